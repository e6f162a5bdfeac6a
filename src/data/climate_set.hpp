// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <hpcai/comm/communicator.hpp>
#include <hpcai/config/config.hpp>
#include <hpcai/data/climate_channels.hpp>
#include <hpcai/data/image.hpp>
#include <hpcai/data/record_set.hpp>
#include <hpcai/data/sample_set.hpp>

#include "field_numbers.hpp"

/// Sample sets of weather: (height, width, 16) normalized values and boxes. In training with
/// data.climate_augmentation, hemispheres are exchanged with probability 1/2, and fields of all
/// longitudes are rotated by a random angle.

/// Augmentation of weather that yields possible weather. A mirror image would not: its cyclones
/// would rotate the wrong way.
namespace hpcai::data {

/// Default normalization, in fp32, of fields without statistics: (x - mean) / deviation. The values
/// are those of a CAM5 run, area-weighted over the sphere, except for two deviations. The run's
/// deviation of the sea-level pressure is not plausible, so that of ClimateNet is used. The
/// deviation of Z1000 is derived from it.
inline constexpr std::array<double, kClimateChannels> kClimateMean{
    3.765611e-08, 98356.03,   100814.414,  0.010749293, 216.13145, 258.9456, 26.160023, 288.03925,
    288.82578,    0.98314494, -0.45998842, 0.116573125, 0.1930554, 69.0,     12031.449, 63.435772};
inline constexpr std::array<double, kClimateChannels> kClimateDeviation{
    1.8771327e-07, 7778.5957, 1461.2227, 0.006383436, 9.791707,  14.35133, 17.04294, 19.094095,
    19.866386,     8.164175,  6.4967732, 5.6868863,   5.4465833, 124.0,    679.5602, 4.2283397};

/// Makes sets of data.synthetic_samples and data.synthetic_validation_samples samples with a
/// ClimateGenerator (default settings, run.seed, windows of workload.image_size x image_width
/// pixels), in data.climate_precision. The sets share data.decoded_cache_mib in proportion to
/// their sizes. Throws Error(usage) for a size that the generator does not support.
SampleSets make_synthetic_climate(const config::Config& config);

/// Returns kClimateMean and kClimateDeviation.
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
    /// Writes the normalized fields of the sample. If it is bad, returns the reason, and the fields
    /// are unspecified.
    virtual std::string write_fields(std::uint32_t sample, std::span<std::byte> fields) const = 0;

private:
    std::string write_or_clear(std::uint32_t sample, std::span<std::byte> fields) const;

    SampleFormat format_;
    ChannelStatistics statistics_;
    bool is_augmented_;
};

/// Extents of the fields of one sample (height, width, 16).
struct FieldSize {
    int height = 0;
    int width = 0;
};

/// Rotates the planet: moves column x of a grid of all longitudes, and boxes, to (x + columns)
/// modulo the width. Removes boxes that would cross the seam. `columns` is from 0 to width - 1.
void roll_longitude(std::span<float> fields, const FieldSize& size, int columns,
                    std::vector<Box>& boxes);

/// Exchanges north and south: reverses rows, negates the northward winds V850 and VBOT, and mirrors
/// boxes. `mean` and `standard_deviation` (16 each) are the normalization of `fields`; both are
/// empty for fields in physical units.
void flip_hemispheres(std::span<float> fields, const FieldSize& size, std::vector<Box>& boxes,
                      std::span<const double> mean, std::span<const double> standard_deviation);

}  // namespace hpcai::data
