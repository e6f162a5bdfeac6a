// SPDX-License-Identifier: Apache-2.0
#include <hpcai/data/image_codec.hpp>
#include <hpcai/data/sample_set.hpp>
#include <hpcai/data/transforms.hpp>

#include "picture_file.hpp"

namespace hpcai::data {
namespace {

/// Returns the crop after downscaling by `denominator`, relative to the first pixel of `touched`,
/// the smallest box of whole downscaled pixels that contains the crop.
RealBox downscaled_crop(const PixelBox& touched, const PixelBox& crop, int denominator) {
    const auto scale = static_cast<float>(denominator);
    const auto left = static_cast<float>(crop.left) / scale - static_cast<float>(touched.left);
    const auto top = static_cast<float>(crop.top) / scale - static_cast<float>(touched.top);
    return {left, top, left + static_cast<float>(crop.width) / scale,
            top + static_cast<float>(crop.height) / scale};
}

class FolderSamples : public SampleSet {
public:
    FolderSamples(SampleIndex index, const config::DataConfig& data, int image_size,
                  std::shared_ptr<const StagedPictures> staged)
        : index_(std::move(index)),
          staged_(std::move(staged)),
          augmentation_{data.random_area_minimum, data.flip_probability,
                        data.vertical_flip_probability},
          image_size_(image_size),
          format_{image_size, image_size, kImageChannels} {
        // A run needs digests only for staging, which is complete. ImageNet's digests use 100 MB.
        for (ShardRange& range : index_.ranges) std::string().swap(range.sha256);
        if (data.decoded_cache_mib > 0 || data.resident_mib > 0 ||
            data.decoder == config::Decoder::gpu) {
            cache_ = std::make_unique<SampleCache<DecodedImage>>(
                std::size_t{1} * data.decoded_cache_mib << 20);
        }
    }

    std::int64_t samples() const override { return std::ssize(index_.samples); }
    int classes() const override { return static_cast<int>(index_.classes.size()); }
    const SampleFormat& format() const override { return format_; }
    std::int32_t label(std::uint32_t sample) const override { return index_.samples[sample].label; }
    std::string name(std::uint32_t sample) const override { return index_.samples[sample].path; }
    std::string location(std::uint32_t sample) const override { return index_.location_of(sample); }

    std::string training_sample(std::uint32_t sample, CounterStream random,
                                const SampleView& out) const override {
        const std::span<std::uint8_t> pixels = as_u8(out.pixels);
        return decode_or_grey(pixels, [&] {
            return cache_ ? augment_full(sample, random, pixels)
                          : augment_region(sample, random, pixels);
        });
    }

    DecodedImage decode_full_size(std::uint32_t sample) const override {
        return record_warning(sample, decode_image(read(sample)));
    }
    TrainingView training_view(ImageSize size, CounterStream random) const override {
        return draw_training_view(size, augmentation_, random);
    }

    std::string evaluation_sample(std::uint32_t sample, const SampleView& out) const override {
        const std::span<std::uint8_t> pixels = as_u8(out.pixels);
        return decode_or_grey(pixels, [&] {
            const DecodedImage decoded = decode_full_size(sample);
            resize_bilinear(decoded.image.view(),
                            evaluation_request(decoded.full_size, image_size_), pixels);
            return decoded.damage;
        });
    }

    std::vector<std::byte> contents(std::uint32_t sample) const override {
        const std::vector<std::uint8_t> file = read(sample);
        const auto bytes = std::as_bytes(std::span(file));
        return {bytes.begin(), bytes.end()};
    }

private:
    std::vector<std::uint8_t> read(std::uint32_t sample) const {
        return read_picture(staged_.get(), sample, [&] { return pictures_.read(sample); });
    }

    std::string augment_region(std::uint32_t sample, CounterStream& random,
                               std::span<std::uint8_t> pixels) const {
        const std::vector<std::uint8_t> bytes = read(sample);
        const TrainingView view = draw_training_view(read_image_size(bytes), augmentation_, random);
        const DecodedImage decoded = record_warning(
            sample, decode_image(bytes, {largest_denominator(view.crop, image_size_), view.crop}));
        // Crop first, like torchvision, so that the filter does not read pixels outside the crop.
        PixelBox touched = downscaled_box(view.crop, decoded.denominator);
        const RealBox box = downscaled_crop(touched, view.crop, decoded.denominator);
        touched.left -= decoded.left;
        touched.top -= decoded.top;
        resize_bilinear(decoded.image.view().crop(touched),
                        {box, image_size_, image_size_, {0, 0, image_size_, image_size_}}, pixels);
        flip(pixels, {image_size_, image_size_}, view);
        return decoded.damage;
    }

    std::string augment_full(std::uint32_t sample, CounterStream& random,
                             std::span<std::uint8_t> pixels) const {
        const auto decoded = cache_->get(sample, [&] { return decode_full_size(sample); });
        const TrainingView view = draw_training_view(decoded->full_size, augmentation_, random);
        const ImageView crop = decoded->image.view().crop(view.crop);
        resize_bilinear(crop, full_resize_request(crop, image_size_, image_size_), pixels);
        flip(pixels, {image_size_, image_size_}, view);
        return decoded->damage;
    }

    SampleIndex index_;
    IndexedPictures pictures_{index_};
    std::shared_ptr<const StagedPictures> staged_;
    Augmentation augmentation_;
    int image_size_;
    SampleFormat format_;
    std::unique_ptr<SampleCache<DecodedImage>> cache_;
};

}  // namespace

std::shared_ptr<const SampleSet> make_folder_samples(SampleIndex index,
                                                     const config::DataConfig& data, int image_size,
                                                     std::shared_ptr<const StagedPictures> staged) {
    return std::make_shared<FolderSamples>(std::move(index), data, image_size, std::move(staged));
}

}  // namespace hpcai::data
