// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include <hpcai/config/config.hpp>
#include <hpcai/data/record_set.hpp>
#include <hpcai/data/sample_set.hpp>

namespace hpcai::data {

/// kClimateMean and kClimateDeviation.
ChannelStatistics usual_statistics();

/// In fp32, in place; pixels of 16 numbers.
void normalize(std::span<float> fields, const ChannelStatistics& statistics);

/// Writes `planes` (16, H, W) in physical units as a set has them: normalized, (H, W, 16), rounded
/// to `dtype`.
void write_normalized(std::span<const float> planes, const ChannelStatistics& statistics,
                      tensor::DType dtype, std::span<std::byte> fields, int threads = 1);

tensor::DType dtype_of(config::FieldPrecision precision);

/// Rounds to `dtype`, f32, f16 or bf16; and back.
void write_numbers(std::span<const float> from, tensor::DType dtype, std::span<std::byte> to);
void read_numbers(std::span<const std::byte> from, tensor::DType dtype, std::span<float> to);

/// Of numbers of f32, f16 or bf16.
bool all_finite(std::span<const std::byte> numbers, tensor::DType dtype);

/// Sets of weather; what they differ in is where the fields come from.
class ClimateSet : public SampleSet {
public:
    ClimateSet(const SampleFormat& format, ChannelStatistics statistics, bool is_varied)
        : format_(format), statistics_(std::move(statistics)), is_varied_(is_varied) {}

    int classes() const override;
    std::string class_name(std::int32_t category) const override;
    const SampleFormat& format() const override { return format_; }
    std::int32_t label(std::uint32_t) const override { return 0; }
    std::string training_sample(std::uint32_t sample, CounterStream random,
                                const SampleView& view) const override;
    std::string evaluation_sample(std::uint32_t sample, const SampleView& view) const override;

    /// kClimateChannelNames, unless the set has its own.
    virtual std::vector<std::string> channel_names() const;
    /// The files that it is made of.
    virtual std::vector<RecordSource> sources() const { return {}; }
    /// A field holds (x - mean) / standard_deviation.
    const ChannelStatistics& statistics() const { return statistics_; }

protected:
    /// Writes the sample's fields, normalized; returns the reason when it is bad, and then the
    /// fields may be anything.
    virtual std::string write_fields(std::uint32_t sample, std::span<std::byte> fields) const = 0;

private:
    std::string write_or_clear(std::uint32_t sample, std::span<std::byte> fields) const;

    SampleFormat format_;
    ChannelStatistics statistics_;
    bool is_varied_;
};

}  // namespace hpcai::data
