// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <hpcai/comm/communicator.hpp>
#include <hpcai/config/config.hpp>
#include <hpcai/data/climate_channels.hpp>
#include <hpcai/data/image.hpp>
#include <hpcai/data/record_set.hpp>
#include <hpcai/data/sample_set.hpp>

#include "field_numbers.hpp"

/// Sets of weather samples: (height, width, 16) normalized values, and boxes. In training with
/// data.climate_augmentation, north and south are exchanged with probability 1/2, and fields that
/// span all longitudes are rotated around the Earth by a random angle. Both yield plausible
/// weather. East and west are not exchanged, because cyclones would rotate in the wrong direction.
namespace hpcai::data {

/// Makes sets of data.synthetic_samples and data.synthetic_validation_samples samples in
/// data.climate_precision. They use a ClimateGenerator with climate_settings(). The sets share
/// data.decoded_cache_mib in proportion to their numbers of samples. Throws Error(usage) for a
/// window size that the generator does not support.
SampleSets make_synthetic_climate(const config::Config& config);

/// Returns the statistics for generated fields and HDF5 files. The values are those of a CAM5 run,
/// area-weighted over the sphere, except for two standard deviations. That of the sea-level
/// pressure is not plausible in the run, so ClimateNet's is used. That of Z1000 is derived from it.
ChannelStatistics default_statistics();

/// Returns the format of samples in data.climate_precision.
SampleFormat climate_format(const config::Config& config);

/// Base class of weather sets; derived classes provide the fields.
class ClimateSet : public SampleSet {
public:
    ClimateSet(const SampleFormat& format, ChannelStatistics statistics, bool is_augmented)
        : format_(format), statistics_(std::move(statistics)), is_augmented_(is_augmented) {}

    int classes() const override { return kClimateCategories; }
    std::string class_name(std::int32_t category) const override {
        return kClimateCategoryNames[category - 1];
    }
    const SampleFormat& format() const override { return format_; }
    std::int32_t label(std::uint32_t) const override { return 0; }
    std::string training_sample(std::uint32_t sample, CounterStream random,
                                const SampleView& out) const override;
    std::string evaluation_sample(std::uint32_t sample, const SampleView& out) const override;

    /// Returns kClimateChannelNames, unless the set has its own names.
    virtual std::vector<std::string> channel_names() const {
        return {kClimateChannelNames.begin(), kClimateChannelNames.end()};
    }
    /// Returns the source files of the set.
    virtual std::vector<RecordSource> sources() const { return {}; }
    /// Returns the statistics of the normalization (x - mean) / standard_deviation.
    const ChannelStatistics& statistics() const { return statistics_; }

protected:
    /// Writes the normalized fields of the sample. If it is bad, returns the reason or throws
    /// Error(data), and the fields are unspecified.
    virtual std::string write_fields(std::uint32_t sample, std::span<std::byte> fields) const = 0;

private:
    std::string write_or_clear(std::uint32_t sample, std::span<std::byte> fields) const;

    SampleFormat format_;
    ChannelStatistics statistics_;
    bool is_augmented_;
};

/// Rotates the planet: moves column x of `fields` (size.height, size.width, 16), which span all
/// longitudes, to column (x + columns) modulo the width, and boxes likewise. Removes boxes that
/// would cross the edge of the grid. `columns` is from 0 to size.width - 1.
void roll_longitude(std::span<float> fields, ImageSize size, int columns, std::vector<Box>& boxes);

/// Exchanges north and south: reverses the rows of `fields` (size.height, size.width, 16), which
/// are normalized with `statistics`, negates the northward winds V850 and VBOT, and mirrors boxes.
void flip_hemispheres(std::span<float> fields, ImageSize size, std::vector<Box>& boxes,
                      const ChannelStatistics& statistics);

}  // namespace hpcai::data
