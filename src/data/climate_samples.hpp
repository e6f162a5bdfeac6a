// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>

#include <hpcai/comm/communicator.hpp>
#include <hpcai/config/config.hpp>
#include <hpcai/data/climate_channels.hpp>
#include <hpcai/data/sample_set.hpp>

/// Sample sets of weather: (height, width, 16) normalized numbers and boxes. In training, with
/// data.climate_augmentation, hemispheres are exchanged with a chance of one half and a grid of all
/// longitudes is turned.
namespace hpcai::data {

/// What fields that bring no statistics of their own are normalized by, in fp32:
/// (x - mean) / deviation. Of a CAM5 run, over the sphere's area. Those of sea-level pressure,
/// whose deviation is not plausible there, are ClimateNet's, and the height at 1000 hPa follows
/// from it.
inline constexpr std::array<double, kClimateChannels> kClimateMean{
    3.765611e-08, 98356.03,   100814.414,  0.010749293, 216.13145, 258.9456, 26.160023, 288.03925,
    288.82578,    0.98314494, -0.45998842, 0.116573125, 0.1930554, 69.0,     12031.449, 63.435772};
inline constexpr std::array<double, kClimateChannels> kClimateDeviation{
    1.8771327e-07, 7778.5957, 1461.2227, 0.006383436, 9.791707,  14.35133, 17.04294, 19.094095,
    19.866386,     8.164175,  6.4967732, 5.6868863,   5.4465833, 124.0,    679.5602, 4.2283397};

/// data.synthetic_samples and data.synthetic_validation_samples of the ClimateGenerator with its
/// default settings and run.seed, on windows of workload.image_size x image_width, in
/// data.climate_precision. Of data.decoded_cache_mib each set has a share by its number
/// of samples, to keep those it made.
/// Throws Error(usage) for a size that the generator does not make.
SampleSets make_synthetic_climate(const config::Config& config);

/// ExtremeWeather samples at data.path and data.validation_path: folders that `data transcode`
/// wrote, or HDF5 files, which are slow to read and normalized as above, in
/// data.climate_precision. A sample that is damaged or holds a value that is not finite is bad.
/// Throws Error(data) naming the file when it is not sound, has another size than the workload, a
/// sample with more than data.max_boxes boxes, for HDF5 files with the height at 100 hPa, or when
/// both sets have other channels or are not normalized alike.
/// A `duplicator` copies the files to each node before they are opened. Collective.
SampleSets load_climate(const config::Config& config, comm::Communicator& group,
                        DataDuplicator* duplicator = nullptr);

}  // namespace hpcai::data
