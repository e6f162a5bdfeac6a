// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <hpcai/base/philox.hpp>
#include <hpcai/data/climate_generator.hpp>
#include <hpcai/data/image.hpp>

#include "grid.hpp"

namespace hpcai::data::climate {

/// A tropical low: Holland's profile of pressure, p = p_c + dp exp(-(R_m / r)^B) (Holland, 1980).
struct Vortex {
    double latitude = 0, longitude = 0;  // degrees north and east
    double drop = 0;                     // dp, Pa
    double wind_radius = 0;              // R_m, m
    double shape = 1;                    // B
    double outer_radius = 0;             // m
    double rotation = 0;                 // of its rain bands, rad
    double strength = 0;                 // of its warm core and rain; 1 for a typical cyclone
};

/// An extratropical low: an elliptic Gaussian with a tilted trough, fronts and comma-shaped rain.
struct Low {
    double latitude = 0, longitude = 0;  // degrees north and east
    double drop = 0;                     // Pa
    double size = 0;                     // m, standard deviation
    double eccentricity = 1;  // multiplies the size from east to west, divides it north to south
    double tilt = 0;          // m, westward displacement of the trough aloft
};

/// A moist plume along a curved path.
struct Plume {
    double latitude_0 = 0, longitude_0 = 0;  // of its origin, degrees north and east
    double latitude_1 = 0, longitude_1 = 0;  // of its end, degrees north and east
    double bend = 0;                         // degrees to the east in the middle of the path
    double width = 0;                        // m, standard deviation
    double water = 0;                        // kg/m^2 on its axis

    double latitude_at(double q) const { return latitude_0 + (latitude_1 - latitude_0) * q; }
    double longitude_at(double q) const {
        return longitude_0 + (longitude_1 - longitude_0) * q + bend * 4 * q * (1 - q);
    }
    /// Returns the ratio of the water on the axis to `water`; `q` is the fraction of the path.
    static double profile(double q);
};

/// Number of segments of a plume's path.
inline constexpr int kPathSteps = 60;

/// A rectangle of the grid, edges in pixels. Row 0 is the south pole, so `top` is in the south.
struct Extent {
    double left = 0, top = 0, right = 0, bottom = 0;

    double area() const {
        return left < right && top < bottom ? (right - left) * (bottom - top) : 0;
    }
    Extent intersection(const Extent& other) const;
    Extent bounding_box(const Extent& other) const;
};

/// The box of an event.
struct Label {
    ClimateCategory category{};
    Extent extent;
    std::vector<Extent> parts;  // of a plume: extents around points of its path
    bool dropped = false;       // missing from the boxes of the sample

    /// Returns the extent of the part that is visible in `window`.
    Extent visible_in(const Extent& window) const;
};

/// The events of one snapshot. They are drawn first and later painted on any part of the grid.
/// Numbers in the generator are tuned to statistics of CAM5 if no source is named.
struct Weather {
    double season = 0;  // -1: December to February, 1: June to August
    std::vector<Vortex> vortices;
    std::vector<Low> lows;
    std::vector<Plume> plumes;
    std::vector<Label> labels;
};

/// Draws a snapshot's events. The areas reserved for different events do not overlap.
Weather draw_weather(const ClimateSettings& settings, const Surface& surface, CounterStream random);

/// Identifies the random numbers of one sample.
struct SampleKey {
    std::uint64_t seed = 0;
    Split split{};
    std::uint32_t number = 0;

    /// Returns the random stream `index` of the sample; all streams are independent.
    CounterStream stream(std::uint32_t index) const {
        return {seed, RandomPurpose::climate, static_cast<std::uint32_t>(split), number, index};
    }
};

/// The quantities of a patch, from which its channels are computed.
struct Snapshot {
    explicit Snapshot(const Patch& where);

    Patch patch;
    Field pressure;                    // Pa, at sea level
    Field pressure_anomaly;            // Pa, without events
    Field height_anomaly;              // m, at 200 hPa
    Field eastward, northward;         // m/s, winds of events
    Field water;                       // kg/m^2, precipitable
    Field rain;                        // m/s
    Field temperature_500;             // K
    Field temperature_200;             // K
    Field surface_temperature;         // K
    Field humidity;                    // kg/kg
    Field moisture_noise, fine_noise;  // variance 1
    std::vector<double> jet;           // m/s, eastward, of each row
};

/// Makes the weather without events: profiles along the latitude plus random waves.
Snapshot make_background(const Patch& patch, const Surface& surface, double season,
                         const SampleKey& key);

/// Adds the events to a snapshot, as far as they lie inside its patch.
void paint(const Weather& weather, Snapshot& snapshot);

/// Computes the 16 channels: geostrophic winds, hypsometric heights, surface pressure and others.
/// `fields` are those of the inner pixels. Only central differences use the outermost rows and
/// columns of the snapshot.
void diagnose(const Snapshot& snapshot, const Surface& surface, FieldLayout layout,
              std::span<float> fields);

}  // namespace hpcai::data::climate
