// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include <hpcai/config/config.hpp>
#include <hpcai/data/record_set.hpp>
#include <hpcai/data/sample_set.hpp>

#include "field_numbers.hpp"

namespace hpcai::data {

/// Returns kClimateMean and kClimateDeviation.
ChannelStatistics usual_statistics();

/// Returns the format of samples that a set makes in data.climate_precision.
SampleFormat climate_format(const config::Config& config);

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
