// SPDX-License-Identifier: Apache-2.0
#include "climate_set.hpp"

#include <hpcai/data/climate_generator.hpp>

#include "picture_file.hpp"

namespace hpcai::data {
namespace {

/// Calls update(values) with the fields in fp32 and stores the result in `fields`.
template <typename Update>
void update_in_fp32(std::span<std::byte> fields, tensor::DType dtype, const Update& update) {
    if (dtype == tensor::DType::f32) {
        update(std::span(reinterpret_cast<float*>(fields.data()), fields.size() / sizeof(float)));
        return;
    }
    std::vector<float> numbers(fields.size() / tensor::size_of(dtype));
    convert_to_fp32(fields, dtype, numbers);
    update(std::span(numbers));
    convert_from_fp32(numbers, dtype, fields);
}

constexpr std::array kFieldTypes{tensor::DType::f32, tensor::DType::f16,
                                 tensor::DType::bf16};  // by config::FieldPrecision

constexpr std::array kNorthwardWinds{ClimateChannel::meridional_wind_850,
                                     ClimateChannel::meridional_wind_bottom};

/// Returns the number of elements of a row of `fields`.
std::size_t row_elements(std::span<const float> fields, ImageSize size) {
    const std::size_t elements = std::size_t{kClimateChannels} * size.width;
    ensure(fields.size() == size.height * elements, "{} values of climate fields of {} x {} pixels",
           fields.size(), size.height, size.width);
    return elements;
}

std::int64_t samples_of(const config::DataConfig& data, Split split) {
    return split == Split::training ? data.synthetic_samples : data.synthetic_validation_samples;
}

/// Returns the set's part of data.decoded_cache_mib, in proportion to its number of samples.
std::size_t cache_bytes(const config::DataConfig& data, Split split) {
    const std::size_t budget = std::size_t{1} * data.decoded_cache_mib << 20;
    const auto all = samples_of(data, Split::training) + samples_of(data, Split::validation);
    const double share = static_cast<double>(samples_of(data, split)) / static_cast<double>(all);
    return static_cast<std::size_t>(share * static_cast<double>(budget));
}

class SyntheticClimate final : public ClimateSet {
public:
    SyntheticClimate(const config::Config& config, Split split)
        : ClimateSet(climate_format(config), default_statistics(),
                     split == Split::training && config.data.climate_augmentation),
          generator_(climate_settings(config)),
          split_(split),
          samples_(samples_of(config.data, split)),
          cache_(cache_bytes(config.data, split)) {}

    std::int64_t samples() const override { return samples_; }
    std::string name(std::uint32_t sample) const override {
        return fmt::format("climate/{}/{:08}",
                           split_ == Split::training ? "training" : "validation", sample);
    }
    std::vector<Box> boxes(std::uint32_t sample) const override {
        return generator_.boxes(split_, sample);
    }

private:
    std::string write_fields(std::uint32_t sample, std::span<std::byte> fields) const override {
        const auto made = cache_.get(sample, [&] { return make(sample); });
        std::ranges::copy(*made, fields.begin());
        return "";
    }

    std::vector<std::byte> make(std::uint32_t sample) const {
        std::vector<float> numbers(generator_.elements());
        std::vector<Box> boxes;
        generator_.sample(split_, sample, FieldLayout::channels_last, numbers, boxes);
        normalize(numbers, statistics());
        std::vector<std::byte> fields(format().pixel_bytes());
        convert_from_fp32(numbers, format().dtype, fields);
        return fields;
    }

    ClimateGenerator generator_;
    Split split_;
    std::int64_t samples_;
    mutable SampleCache<std::vector<std::byte>> cache_;
};

}  // namespace

ChannelStatistics default_statistics() {
    return {
        {3.765611e-08, 98356.03, 100814.414, 0.010749293, 216.13145, 258.9456, 26.160023, 288.03925,
         288.82578, 0.98314494, -0.45998842, 0.116573125, 0.1930554, 69.0, 12031.449, 63.435772},
        {1.8771327e-07, 7778.5957, 1461.2227, 0.006383436, 9.791707, 14.35133, 17.04294, 19.094095,
         19.866386, 8.164175, 6.4967732, 5.6868863, 5.4465833, 124.0, 679.5602, 4.2283397}};
}

SampleFormat climate_format(const config::Config& config) {
    return {config.workload.image_size, config::image_width(config), kClimateChannels,
            kFieldTypes[static_cast<std::size_t>(config.data.climate_precision)],
            config.data.max_boxes};
}

std::string ClimateSet::write_or_clear(std::uint32_t sample, std::span<std::byte> fields) const {
    std::string reason;
    try {
        reason = write_fields(sample, fields);
    } catch (const Error& error) {
        if (error.code() != ExitCode::data) throw;
        reason = error.what();
    }
    if (!reason.empty()) std::ranges::fill(fields, std::byte{0});
    return reason;
}

std::string ClimateSet::training_sample(std::uint32_t sample, CounterStream random,
                                        const SampleView& out) const {
    const std::string reason = write_or_clear(sample, out.pixels);
    std::vector<Box> sample_boxes = boxes(sample);
    const ImageSize size{static_cast<int>(format_.width), static_cast<int>(format_.height)};
    const bool is_flipped = random.uniform() < 0.5;
    const std::uint32_t shift = random.below(static_cast<std::uint32_t>(size.width));
    const bool is_rolled = size.width == kClimateColumns;
    if (reason.empty() && is_augmented_ && (is_flipped || is_rolled)) {
        update_in_fp32(out.pixels, format_.dtype, [&](std::span<float> fields) {
            if (is_flipped) flip_hemispheres(fields, size, sample_boxes, statistics_);
            if (is_rolled) roll_longitude(fields, size, static_cast<int>(shift), sample_boxes);
        });
    }
    write_boxes(sample_boxes, out.boxes);
    return reason;
}

std::string ClimateSet::evaluation_sample(std::uint32_t sample, const SampleView& out) const {
    const std::string reason = write_or_clear(sample, out.pixels);
    write_boxes(boxes(sample), out.boxes);
    return reason;
}

void roll_longitude(std::span<float> fields, ImageSize size, int columns, std::vector<Box>& boxes) {
    const std::size_t elements = row_elements(fields, size);
    ensure(columns >= 0 && columns < size.width, "a roll by {} of {} columns", columns, size.width);
    for (int row = 0; row < size.height; ++row) {
        const auto pixels = fields.subspan(row * elements, elements);
        std::rotate(pixels.begin(), pixels.end() - std::ptrdiff_t{columns} * kClimateChannels,
                    pixels.end());
    }
    const auto width = static_cast<float>(size.width);
    for (Box& box : boxes) {
        box.x1 += static_cast<float>(columns);
        box.x2 += static_cast<float>(columns);
        if (box.x1 < width) continue;
        box.x1 -= width;
        box.x2 -= width;
    }
    std::erase_if(boxes, [width](const Box& box) { return box.x2 > width; });
}

void flip_hemispheres(std::span<float> fields, ImageSize size, std::vector<Box>& boxes,
                      const ChannelStatistics& statistics) {
    const std::size_t elements = row_elements(fields, size);
    const std::size_t height = size.height;
    for (std::size_t south = 0; south < height / 2; ++south) {
        const auto southern = fields.subspan(south * elements, elements);
        std::swap_ranges(
            southern.begin(), southern.end(),
            fields.begin() + static_cast<std::ptrdiff_t>((height - 1 - south) * elements));
    }
    for (const ClimateChannel wind : kNorthwardWinds) {
        const std::size_t channel = index_of(wind);
        // If x is the normalized wind v, normalized -v is -x - 2 mean / standard deviation.
        const double shift = 2 * statistics.mean[channel] / statistics.standard_deviation[channel];
        for (std::size_t i = channel; i < fields.size(); i += kClimateChannels) {
            fields[i] = static_cast<float>(-fields[i] - shift);
        }
    }
    const auto bottom = static_cast<float>(size.height);
    for (Box& box : boxes) {
        box = {box.x1, bottom - box.y2, box.x2, bottom - box.y1, box.category};
    }
}

ClimateSettings climate_settings(const config::Config& config) {
    return {.height = config.workload.image_size,
            .width = config::image_width(config),
            .seed = config.run.seed};
}

SampleSets make_synthetic_climate(const config::Config& config) {
    return {std::make_shared<SyntheticClimate>(config, Split::training),
            std::make_shared<SyntheticClimate>(config, Split::validation),
            {}};
}

}  // namespace hpcai::data
