// SPDX-License-Identifier: Apache-2.0
#include "snapshot.hpp"

namespace hpcai::data::climate {
namespace {

// Random streams of a sample; streams 0 and 1 are for events and the window.
enum Stream : std::uint32_t { kPressure = 2, kPlanetary, kMoisture, kTemperature, kFine };

struct Noise {
    Field pressure, planetary, moisture, temperature, fine;
};

/// The numbers are those of WaveSpectrum: waves, lowest, highest, slope, spacing.
Noise make_noise(const Patch& patch, const SampleKey& key) {
    return {random_field({80, 6, 26, 2.6, 4}, key.stream(kPressure), patch),
            random_field({24, 2, 6, 1.5, 4}, key.stream(kPlanetary), patch),
            random_field({80, 5, 60, 1.2, 2}, key.stream(kMoisture), patch),
            random_field({48, 4, 30, 1.4, 4}, key.stream(kTemperature), patch),
            random_field({96, 30, 160, 1.0, 1}, key.stream(kFine), patch)};
}

double sine_power(double degrees, double exponent) {
    return std::pow(std::fabs(std::sin(degrees * kDegree)), exponent);
}

/// Quantities that depend only on latitude and season.
struct Zone {
    double season = 0;  // -1 to 1
    double sine = 0;    // of the latitude
    double storms = 0;  // 0 to 1, pressure variability
    double rain_belt = 0;
    double dry_belt = 0;
    double surface_temperature = 0;  // K
    double temperature_500 = 0;      // K
    double temperature_200 = 0;      // K
    double variable_heat = 0;        // 0 to 1, variability of the temperatures aloft
    double pressure = 0;             // Pa
    double jet = 0;                  // m/s
};

Zone zone_at(double latitude, double season) {
    const double l = latitude, distance = std::fabs(l);  // from the equator, degrees
    Zone zone;
    zone.season = season;
    zone.sine = std::sin(l * kDegree);
    zone.storms = bell(distance, 50, 18);
    zone.rain_belt = bell(l, 7 * season, 7);
    zone.dry_belt = bell(distance, 24, 9);
    zone.surface_temperature = 303.8 - 52 * sine_power(l - 9 * season, 2.8) -
                               10 * smooth_step(60, 72, -l) - 4 * smooth_step(66, 78, l);
    zone.temperature_500 = 269.3 - 44 * sine_power(l - 5 * season, 3.0);
    const double summer = smooth_step(45, 80, distance) * season * (l > 0 ? 1 : -1);
    zone.temperature_200 = 217.5 - 2 * bell(distance, 0, 22) + 6 * bell(distance, 50, 20) -
                           5 * smooth_step(50, 85, distance) + (summer > 0 ? 14 : 20) * summer;
    zone.variable_heat = 0.35 + 0.65 * smooth_step(12, 40, distance);
    zone.pressure = 101050 + 1000 * bell(distance, 30, 13) - 2600 * bell(l, -63, 12) -
                    700 * bell(l, 62, 11) - 250 * zone.rain_belt + 400 * smooth_step(68, 82, -l);
    zone.jet = 11 * bell(distance, 45, 14) - 7 * bell(distance, 13, 11) - 2 * bell(distance, 72, 9);
    return zone;
}

/// Specific humidity of saturated air over water at about 1010 hPa (Magnus), kg/kg.
double saturation(double temperature) {
    return 6.112 * std::exp(17.67 * (temperature - 273.15) / (temperature - 29.65)) * 0.622 / 1010;
}

struct Ground {
    double height = 0;  // m
    bool land = false;
};

// In this file, `s` is the snapshot and `k` the index of a pixel.
void fill_pixel(Snapshot& s, std::size_t k, const Zone& zone, const Ground& ground,
                const Noise& noise) {
    const double local = noise.pressure[k], planetary = noise.planetary[k];
    const double moisture = noise.moisture[k], thermal = noise.temperature[k];
    const double land = ground.land ? 1 : 0;
    const double surface = zone.surface_temperature + 3.0 * thermal * (0.35 + 0.9 * land) +
                           2.2 * planetary - land * 0.0055 * ground.height +
                           land * 7.5 * zone.season * zone.sine;
    const double anomaly = (480 + 1350 * zone.storms) * (0.75 * local + 0.65 * planetary);
    const double humidity =
        saturation(std::min(surface, 302.5)) * (0.78 - 0.10 * land + 0.05 * moisture);
    const double water = (2350 * humidity + 2.5) *
                         (1 + 0.45 * zone.rain_belt - 0.22 * zone.dry_belt) *
                         (1 + 0.25 * moisture) * std::exp(-ground.height / 2200);
    const double convection =
        std::max(0.0, 0.9 * moisture + 0.7 * noise.fine[k] - 1.35 + 0.9 * zone.rain_belt +
                          0.5 * zone.storms - 0.6 * zone.dry_belt);
    s.surface_temperature[k] = static_cast<float>(surface);
    s.pressure_anomaly[k] = static_cast<float>(anomaly);
    s.pressure[k] = static_cast<float>(zone.pressure + anomaly);
    s.height_anomaly[k] = static_cast<float>((90 + 150 * zone.storms) * 0.8 * (local + planetary));
    s.humidity[k] = static_cast<float>(std::max(1e-5, humidity));
    s.water[k] = static_cast<float>(std::max(0.2, water));
    s.rain[k] = static_cast<float>(1.7e-7 * convection * convection * s.water[k] / 25 +
                                   (s.water[k] > 15 ? 3e-9 : 1e-9));
    s.temperature_500[k] = static_cast<float>(
        zone.temperature_500 + zone.variable_heat * (2.4 * thermal + 3.4 * planetary));
    s.temperature_200[k] = static_cast<float>(zone.temperature_200 +
                                              zone.variable_heat * (6.0 * planetary + 3.6 * local));
}

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

}  // namespace

Snapshot::Snapshot(const Patch& where) : patch(where) {
    for (Field* field :
         {&pressure, &pressure_anomaly, &height_anomaly, &eastward, &northward, &water, &rain,
          &temperature_500, &temperature_200, &surface_temperature, &humidity}) {
        field->resize(patch.pixels());
    }
}

Snapshot make_background(const Patch& patch, const Surface& surface, double season,
                         const SampleKey& key) {
    Snapshot snapshot(patch);
    Noise noise = make_noise(patch, key);
    for (int r = 0; r < patch.rows; ++r) {
        const Zone zone = zone_at(patch.latitude(r), season);
        snapshot.jet.push_back(zone.jet);
        for (int c = 0; c < patch.columns; ++c) {
            const std::size_t ground = Surface::at(patch.grid_row(r), patch.grid_column(c));
            fill_pixel(snapshot, patch.at(r, c), zone,
                       {surface.height[ground], surface.land[ground] != 0}, noise);
        }
    }
    snapshot.moisture_noise = std::move(noise.moisture);
    snapshot.fine_noise = std::move(noise.fine);
    return snapshot;
}

void diagnose(const Snapshot& snapshot, const Surface& surface, FieldLayout layout,
              std::span<float> fields) {
    const Patch& patch = snapshot.patch;
    const bool is_last = layout == FieldLayout::channels_last;
    const std::size_t pixels = fields.size() / kClimateChannels;
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
            for (std::size_t channel = 0; channel < kClimateChannels; ++channel) {
                const std::size_t index =
                    is_last ? pixel * kClimateChannels + channel : channel * pixels + pixel;
                fields[index] = static_cast<float>(values[channel]);
            }
            ++pixel;
        }
    }
}

}  // namespace hpcai::data::climate
