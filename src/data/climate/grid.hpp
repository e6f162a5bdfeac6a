// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <numbers>

#include <hpcai/base/philox.hpp>
#include <hpcai/data/climate_channels.hpp>

/// Positions of pixels on the Earth, and fields at them.
namespace hpcai::data::climate {

inline constexpr double kEarthRadius = 6.371e6;    // m
inline constexpr double kRotationRate = 7.292e-5;  // rad/s
inline constexpr double kDegree = std::numbers::pi / 180;
inline constexpr double kMetresPerDegree = kEarthRadius * kDegree;
inline constexpr double kDegreesPerRow = 180.0 / (kClimateRows - 1);
inline constexpr double kDegreesPerColumn = 360.0 / kClimateColumns;

/// Returns the latitude in degrees north; row 0 is the south pole.
constexpr double latitude_of(double row) {
    return -90 + row * kDegreesPerRow;
}
constexpr double row_of(double latitude) {
    return (latitude + 90) / kDegreesPerRow;
}
/// Returns the column of a longitude in degrees east.
constexpr double column_of(double longitude) {
    return longitude / kDegreesPerColumn;
}

/// Returns 0 for x <= low, 1 for x >= high, and a smooth transition between them.
inline double smooth_step(double low, double high, double x) {
    const double t = std::clamp((x - low) / (high - low), 0.0, 1.0);
    return t * t * (3 - 2 * t);
}

inline double bell(double x, double centre, double width) {
    const double t = (x - centre) / width;
    return std::exp(-t * t);
}

/// A rectangle of pixels to compute. Rows beyond a pole repeat the row at the pole. Columns
/// continue around the Earth.
struct Patch {
    int row = 0;
    int column = 0;
    int rows = 0;
    int columns = 0;

    std::size_t pixels() const { return std::size_t{1} * rows * columns; }
    int grid_row(int r) const { return std::clamp(row + r, 0, kClimateRows - 1); }
    int grid_column(int c) const {
        return ((column + c) % kClimateColumns + kClimateColumns) % kClimateColumns;
    }
    double latitude(int r) const { return latitude_of(grid_row(r)); }
    /// Returns the index of pixel (r, c) in an array of the patch's pixels.
    std::size_t at(int r, int c) const { return std::size_t{1} * r * columns + c; }
};

using Field = std::vector<float>;  // (rows, columns) of a patch

/// The spectrum of a random field.
struct WaveSpectrum {
    int waves = 0;
    double lowest = 1;   // wavenumber, radians per Earth radius
    double highest = 1;  // wavenumber, radians per Earth radius
    double slope = 0;    // amplitudes are proportional to wavenumber^-slope
    int spacing = 1;     // pixels (1, 2 or 4) between points of the grid that is interpolated
};

/// Returns an isotropic random field on the sphere, with mean 0 and variance 1 over all draws: a
/// sum of plane waves in space, evaluated on the sphere. It is smooth at 0 degrees east and at the
/// poles. The value of a pixel does not depend on the patch.
Field random_field(const WaveSpectrum& spectrum, CounterStream random, const Patch& patch);

/// Coasts and mountains, the same for every seed.
struct Surface {
    Field height;                    // m above the sea, (768, 1152)
    std::vector<std::uint8_t> land;  // 1 on land, 0 at sea, (768, 1152)

    static std::size_t at(int row, int column) {
        return std::size_t{kClimateColumns} * row + column;
    }
};

Surface make_surface();

}  // namespace hpcai::data::climate
