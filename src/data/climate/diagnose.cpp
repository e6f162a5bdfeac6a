// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>

#include "snapshot.hpp"

namespace hpcai::data::climate {
namespace {

constexpr double kGravity = 9.80665;     // m/s^2
constexpr double kGasConstant = 287.05;  // of dry air, J/(kg K)
constexpr double kMaxWater = 55;         // kg/m^2; above it, the column saturates gradually

/// Quantities that depend only on the latitude.
struct RowFactors {
    double east_step = 0, north_step = 0;  // m, between a pixel's two neighbours
    double geostrophic = 0;                // m/s per Pa/m
    double hemisphere = 1;
};

RowFactors factors_at(double latitude) {
    const double cosine = std::max(std::cos(latitude * kDegree), 0.05);
    const double coriolis = 2 * kRotationRate * std::sin(latitude * kDegree);
    const double bounded = std::max(std::fabs(coriolis), 3.2e-5) * (coriolis >= 0 ? 1 : -1);
    const double tropics = smooth_step(0, 14, std::fabs(latitude));
    const double pole = 1 - smooth_step(82, 90, std::fabs(latitude));
    return {2 * kMetresPerDegree * kDegreesPerColumn * cosine,
            2 * kMetresPerDegree * kDegreesPerRow, 0.9 * tropics * pole / (1.05 * bounded),
            latitude > 0 ? 1.0 : -1.0};
}

using Values = std::array<double, kClimateChannels>;

double& at(Values& values, ClimateChannel channel) {
    return values[index_of(channel)];
}

// In this file, `s` is the snapshot and `k` the index of a pixel.
void diagnose_winds(const Snapshot& s, std::size_t k, const RowFactors& row, bool land,
                    Values& out) {
    const auto columns = static_cast<std::size_t>(s.patch.columns);
    const Field& p = s.pressure_anomaly;
    const double slope_east = (p[k + 1] - p[k - 1]) / row.east_step;
    const double slope_north = (p[k + columns] - p[k - columns]) / row.north_step;
    const double u =
        s.jet[k / columns] - slope_north * row.geostrophic + s.eastward[k] + 1.1 * s.fine_noise[k];
    const double v = slope_east * row.geostrophic + s.northward[k] + 1.1 * s.moisture_noise[k];
    const double friction = land ? 0.55 : 0.85;
    const double angle = row.hemisphere * (land ? 0.45 : 0.28);
    at(out, ClimateChannel::zonal_wind_850) = u;
    at(out, ClimateChannel::meridional_wind_850) = v;
    at(out, ClimateChannel::zonal_wind_bottom) =
        friction * (u * std::cos(angle) - v * std::sin(angle));
    at(out, ClimateChannel::meridional_wind_bottom) =
        friction * (u * std::sin(angle) + v * std::cos(angle));
}

double saturated(double water) {
    if (water <= kMaxWater) return std::max(0.1, water);
    return kMaxWater + 25 * (1 - std::exp(-(water - kMaxWater) / 25));
}

void diagnose_heat(const Snapshot& s, std::size_t k, double height, bool land, Values& out) {
    const double surface = s.surface_temperature[k];
    const double reference = surface - (land ? 0.4 : 0.9) + 0.3 * s.moisture_noise[k];
    const double humidity = std::max(1e-5, s.humidity[k] * std::exp(-height / 3000));
    at(out, ClimateChannel::surface_temperature) = surface + (land ? 0.8 : 0.1) * s.fine_noise[k];
    at(out, ClimateChannel::reference_temperature) = reference;
    at(out, ClimateChannel::reference_humidity) = humidity;
    at(out, ClimateChannel::precipitable_water) = saturated(s.water[k]);
    at(out, ClimateChannel::precipitation) = std::max(0.0F, s.rain[k]);
    at(out, ClimateChannel::temperature_500) = s.temperature_500[k];
    at(out, ClimateChannel::temperature_200) = s.temperature_200[k];
}

/// Computes pressures and heights in hydrostatic balance with the temperatures in `out`.
void diagnose_heights(const Snapshot& s, std::size_t k, double height, Values& out) {
    const double pressure = s.pressure[k], t500 = s.temperature_500[k];
    const double virtual_temperature = at(out, ClimateChannel::reference_temperature) *
                                       (1 + 0.61 * at(out, ClimateChannel::reference_humidity));
    const double scale = kGasConstant / kGravity;  // m/K
    const double z1000 = (pressure - 1e5) * scale * virtual_temperature / 1e5;
    const double z500 = z1000 + scale * 0.5 * (virtual_temperature - 3 + t500) * std::log(2.0);
    at(out, ClimateChannel::sea_level_pressure) = pressure;
    at(out, ClimateChannel::surface_pressure) =
        pressure * std::exp(-height / (scale * (virtual_temperature + 0.00325 * height)));
    at(out, ClimateChannel::geopotential_height_1000) = z1000;
    at(out, ClimateChannel::geopotential_height_200) =
        z500 + scale * 0.5 * (t500 + s.temperature_200[k]) * std::log(2.5) + s.height_anomaly[k];
    at(out, ClimateChannel::bottom_height) = scale * virtual_temperature * 0.0074;
}

void store(const Values& values, const FieldTarget& target, std::size_t pixel, std::size_t pixels) {
    const bool last = target.layout == FieldLayout::channels_last;
    for (std::size_t channel = 0; channel < kClimateChannels; ++channel) {
        const std::size_t index =
            last ? pixel * kClimateChannels + channel : channel * pixels + pixel;
        target.fields[index] = static_cast<float>(values[channel]);
    }
}

}  // namespace

void diagnose(const Snapshot& snapshot, const Surface& surface, const FieldTarget& target) {
    const Patch& patch = snapshot.patch;
    const auto columns = static_cast<std::size_t>(patch.columns - 2);
    const std::size_t pixels = columns * (patch.rows - 2);
    std::size_t pixel = 0;
    for (int r = 1; r + 1 < patch.rows; ++r) {
        const RowFactors row = factors_at(patch.latitude(r));
        for (int c = 1; c + 1 < patch.columns; ++c) {
            const std::size_t k = patch.at(r, c);
            const std::size_t ground = Surface::at(patch.grid_row(r), patch.grid_column(c));
            const double height = surface.height[ground];
            const bool land = surface.land[ground] != 0;
            Values values{};
            diagnose_winds(snapshot, k, row, land, values);
            diagnose_heat(snapshot, k, height, land, values);
            diagnose_heights(snapshot, k, height, values);
            store(values, target, pixel++, pixels);
        }
    }
}

}  // namespace hpcai::data::climate
