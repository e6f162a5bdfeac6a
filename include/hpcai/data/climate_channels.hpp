// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

/// The fields and labels of ExtremeWeather (Racah et al., 2017), in the order of its files.
namespace hpcai::data {

inline constexpr int kClimateChannels = 16;
inline constexpr int kClimateRows = 768;      // latitudes, row 0 at the south pole
inline constexpr int kClimateColumns = 1152;  // longitudes, column 0 at 0 degrees east
inline constexpr int kClimateCategories = 4;
inline constexpr int kMaxClimateBoxes = 15;  // per sample

enum class ClimateChannel : std::uint8_t {
    precipitation,             // m/s
    surface_pressure,          // Pa
    sea_level_pressure,        // Pa
    reference_humidity,        // kg/kg, 2 m above the surface
    temperature_200,           // K, at 200 hPa
    temperature_500,           // K, at 500 hPa
    precipitable_water,        // kg/m^2
    reference_temperature,     // K, 2 m above the surface
    surface_temperature,       // K
    zonal_wind_850,            // m/s, eastward, at 850 hPa
    zonal_wind_bottom,         // m/s, eastward, at the lowest model level
    meridional_wind_850,       // m/s, northward, at 850 hPa
    meridional_wind_bottom,    // m/s, northward, at the lowest model level
    geopotential_height_1000,  // m
    geopotential_height_200,   // m
    bottom_height,             // m, of the lowest model level
};

inline constexpr std::array<const char*, kClimateChannels> kClimateChannelNames{
    "PRECT", "PS",   "PSL",  "QREFHT", "T200", "T500",  "TMQ",  "TREFHT",
    "TS",    "U850", "UBOT", "V850",   "VBOT", "Z1000", "Z200", "ZBOT"};

enum class ClimateCategory : std::int32_t {
    tropical_depression = 1,
    tropical_cyclone = 2,
    extratropical_cyclone = 3,
    atmospheric_river = 4,
};

/// Names of categories, by category - 1.
inline constexpr std::array<const char*, kClimateCategories> kClimateCategoryNames{
    "tropical depression", "tropical cyclone", "extratropical cyclone", "atmospheric river"};

/// Mean and standard deviation of each channel over all pixels of a data set.
struct ChannelStatistics {
    std::vector<double> mean;
    std::vector<double> standard_deviation;

    bool operator==(const ChannelStatistics&) const = default;
};

constexpr std::size_t index_of(ClimateChannel channel) {
    return static_cast<std::size_t>(channel);
}

}  // namespace hpcai::data
