// SPDX-License-Identifier: Apache-2.0
#include "climate_set.hpp"

#include <algorithm>

#include <hpcai/base/error.hpp>

#include "climate/climate_augmentation.hpp"

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

/// Element types, by config::FieldPrecision.
constexpr std::array kFieldTypes{tensor::DType::f32, tensor::DType::f16, tensor::DType::bf16};

}  // namespace

ChannelStatistics default_statistics() {
    return {{kClimateMean.begin(), kClimateMean.end()},
            {kClimateDeviation.begin(), kClimateDeviation.end()}};
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
    const FieldSize size{static_cast<int>(format_.height), static_cast<int>(format_.width)};
    const bool is_flipped = random.uniform() < 0.5;
    const std::uint32_t shift = random.below(static_cast<std::uint32_t>(size.width));
    const bool is_rolled = size.width == kClimateColumns;
    if (reason.empty() && is_augmented_ && (is_flipped || is_rolled)) {
        update_in_fp32(out.pixels, format_.dtype, [&](std::span<float> fields) {
            if (is_flipped) {
                flip_hemispheres(fields, size, sample_boxes, statistics_.mean,
                                 statistics_.standard_deviation);
            }
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

}  // namespace hpcai::data
