// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <hpcai/data/annotated_pictures.hpp>
#include <hpcai/data/transforms.hpp>

#include "picture_file.hpp"

namespace hpcai::data {
namespace {

/// Returns the boxes of an image scaled to `size`, without boxes less than a pixel wide or high.
std::vector<Box> scaled_boxes(const AnnotatedPicture& picture, ImageSize size) {
    const float scale_x = static_cast<float>(size.width) / static_cast<float>(picture.size.width);
    const float scale_y = static_cast<float>(size.height) / static_cast<float>(picture.size.height);
    std::vector<Box> scaled;
    for (Box box : picture.boxes) {
        box.x1 *= scale_x;
        box.x2 *= scale_x;
        box.y1 *= scale_y;
        box.y2 *= scale_y;
        if (box.x2 - box.x1 >= 1 && box.y2 - box.y1 >= 1) scaled.push_back(box);
    }
    return scaled;
}

std::vector<Box> mirrored(std::vector<Box> boxes, ImageSize size, const TrainingView& view) {
    const auto width = static_cast<float>(size.width);
    const auto height = static_cast<float>(size.height);
    for (Box& box : boxes) {
        if (view.flip) box.x1 = width - std::exchange(box.x2, width - box.x1);
        if (view.vertical_flip) box.y1 = height - std::exchange(box.y2, height - box.y1);
    }
    return boxes;
}

class AnnotatedSamples final : public SampleSet {
public:
    AnnotatedSamples(AnnotatedPictures pictures, const config::DataConfig& data, ImageSize size,
                     std::shared_ptr<const StagedPictures> staged)
        : set_(std::move(pictures)),
          staged_(std::move(staged)),
          flip_probability_(data.flip_probability),
          vertical_flip_probability_(data.vertical_flip_probability),
          size_(size),
          format_{size.height, size.width, kImageChannels, tensor::DType::u8, data.max_boxes},
          cache_(std::size_t{1} * data.decoded_cache_mib << 20) {
        for (std::uint32_t sample = 0; sample < set_.pictures.size(); ++sample) {
            const AnnotatedPicture& picture = set_.pictures[sample];
            boxes_.push_back(scaled_boxes(picture, size));
            narrow_boxes_ += std::ssize(picture.boxes) - std::ssize(boxes_.back());
            require(std::ssize(boxes_.back()) <= format_.max_boxes, ExitCode::data,
                    "{}: {} boxes, but data.max_boxes is {}", location(sample),
                    boxes_.back().size(), format_.max_boxes);
        }
    }
    std::int64_t narrow_boxes() const { return narrow_boxes_; }

    std::int64_t samples() const override { return std::ssize(boxes_); }
    int classes() const override { return static_cast<int>(set_.classes.size()); }
    const SampleFormat& format() const override { return format_; }
    std::int32_t label(std::uint32_t) const override { return 0; }
    std::vector<Box> boxes(std::uint32_t sample) const override { return boxes_[sample]; }
    std::string class_name(std::int32_t category) const override {
        return set_.classes[category - 1];
    }
    std::string name(std::uint32_t sample) const override { return set_.pictures[sample].path; }
    std::string location(std::uint32_t sample) const override {
        return (set_.root / name(sample)).string();
    }

    std::string training_sample(std::uint32_t sample, CounterStream random,
                                const SampleView& out) const override {
        TrainingView view;
        view.flip = random.uniform() < flip_probability_;
        view.vertical_flip = random.uniform() < vertical_flip_probability_;
        const std::string reason = write_pixels(sample, as_u8(out.pixels));
        flip(as_u8(out.pixels), size_, view);
        write_boxes(mirrored(boxes_[sample], size_, view), out.boxes);
        return reason;
    }

    std::string evaluation_sample(std::uint32_t sample, const SampleView& out) const override {
        write_boxes(boxes_[sample], out.boxes);
        return write_pixels(sample, as_u8(out.pixels));
    }

private:
    std::string write_pixels(std::uint32_t sample, std::span<std::uint8_t> pixels) const {
        return decode_or_grey(pixels, [&] {
            const auto resized = cache_.get(sample, [&] { return resize(sample); });
            std::ranges::copy(resized->image.pixels, pixels.begin());
            return resized->damage;
        });
    }

    DecodedImage resize(std::uint32_t sample) const {
        const AnnotatedPicture& picture = set_.pictures[sample];
        DecodedImage decoded = decode_image(read_picture(
            staged_.get(), sample, [&] { return read_picture(set_.root / picture.path); }));
        const std::string fault = size_mismatch(picture.size, decoded.full_size);
        if (!fault.empty()) decoded.damage = fault;
        Image resized(size_.width, size_.height);
        const ImageView full = decoded.image.view();
        resize_bilinear(full, full_resize_request(full, size_.width, size_.height), resized.pixels);
        decoded.image = std::move(resized);
        return record_warning(sample, std::move(decoded));
    }

    AnnotatedPictures set_;
    std::shared_ptr<const StagedPictures> staged_;
    double flip_probability_, vertical_flip_probability_;
    ImageSize size_;
    SampleFormat format_;
    std::vector<std::vector<Box>> boxes_;  // by sample, scaled to size_
    std::int64_t narrow_boxes_ = 0;
    mutable SampleCache<DecodedImage> cache_;
};

}  // namespace

ResizedPictures make_annotated_samples(AnnotatedPictures pictures, const config::DataConfig& data,
                                       ImageSize size,
                                       std::shared_ptr<const StagedPictures> staged) {
    const auto samples =
        std::make_shared<AnnotatedSamples>(std::move(pictures), data, size, std::move(staged));
    return {samples, samples->narrow_boxes()};
}

}  // namespace hpcai::data
