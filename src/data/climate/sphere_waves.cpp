// SPDX-License-Identifier: Apache-2.0
#include "grid.hpp"

namespace hpcai::data::climate {
namespace {

/// Returns cos(2 pi t) by a Taylor polynomial; error 4e-6 for |t| < 2^21. All operations vectorize.
inline float cos_2pi(float t) {
    constexpr float kRounder = 12582912.0F;  // 1.5 * 2^23: adding it rounds to an integer
    const float rest = t - ((t + kRounder) - kRounder);
    const float y = 0.25F - (rest < 0 ? -rest : rest);  // cos(2 pi t) = sin(2 pi y)
    const float z = y * y;
    return y *
           (6.2831853F + z * (-41.341702F + z * (81.605249F + z * (-76.705860F + z * 42.058694F))));
}

struct Wave {
    float x, y, z;  // wave vector, turns per Earth radius
    float phase;    // turns
    float amplitude;
};

struct Longitudes {
    std::vector<float> cosine, sine;
};

Longitudes longitudes_of(const Patch& coarse, int spacing) {
    Longitudes result;
    for (int c = 0; c < coarse.columns; ++c) {
        const int remainder = ((coarse.column + c) * spacing) % kClimateColumns;
        const int column = remainder < 0 ? remainder + kClimateColumns : remainder;
        const double angle = 2 * std::numbers::pi * column / kClimateColumns;
        result.cosine.push_back(static_cast<float>(std::cos(angle)));
        result.sine.push_back(static_cast<float>(std::sin(angle)));
    }
    return result;
}

int floor_division(int a, int b) {
    return a >= 0 ? a / b : -((-a + b - 1) / b);
}

/// Four rows or columns of a coarse grid around a pixel, and their weights in cubic interpolation.
struct Stencil {
    int first = 0;  // the pixel lies in [first + 1, first + 2)
    std::array<float, 4> weights{};
};

Stencil stencil_of(int pixel, int spacing) {
    const int before = floor_division(pixel, spacing);
    const float t = static_cast<float>(pixel - before * spacing) / static_cast<float>(spacing);
    // Lagrange's weights of values at -1, 0, 1 and 2 for a position t in [0, 1).
    return {before - 1,
            {-t * (t - 1) * (t - 2) / 6, (t + 1) * (t - 1) * (t - 2) / 2,
             -(t + 1) * t * (t - 2) / 2, (t + 1) * t * (t - 1) / 6}};
}

/// Interpolates to the columns of the patch. Returns (coarse.rows, patch.columns).
Field interpolate_columns(const Field& values, const Patch& coarse, const Patch& patch,
                          int spacing) {
    Field result(std::size_t{1} * coarse.rows * patch.columns);
    for (int c = 0; c < patch.columns; ++c) {
        const Stencil stencil = stencil_of(patch.column + c, spacing);
        for (int r = 0; r < coarse.rows; ++r) {
            const float* const v = &values[coarse.at(r, stencil.first - coarse.column)];
            result[patch.at(r, c)] = stencil.weights[0] * v[0] + stencil.weights[1] * v[1] +
                                     stencil.weights[2] * v[2] + stencil.weights[3] * v[3];
        }
    }
    return result;
}

Patch coarse_grid_of(const Patch& patch, int spacing) {
    Patch coarse;
    coarse.row = floor_division(patch.grid_row(0), spacing) - 1;
    coarse.rows = floor_division(patch.grid_row(patch.rows - 1), spacing) + 3 - coarse.row;
    coarse.column = floor_division(patch.column, spacing) - 1;
    coarse.columns = floor_division(patch.column + patch.columns - 1, spacing) + 3 - coarse.column;
    return coarse;
}

constexpr std::uint64_t kPlanetSeed = 12345;         // the same planet in every run
constexpr std::uint32_t kPlanetStream = 0xFFFFFFFF;  // a value that SampleKey::split never has
constexpr double kLandThreshold = 0.62;  // standard deviations; 27 % of a normal field is higher
constexpr double kMaxHeight = 5200;      // m

double height_of(double above_threshold, double latitude) {
    const double south = -70 - latitude;  // degrees within the southern ice cap
    if (south > 0) return std::min(900 + 90 * south, kMaxHeight);
    return above_threshold > 0 ? std::min(1150 * std::pow(above_threshold, 2.2), kMaxHeight) : 0.0;
}

std::vector<Wave> draw_waves(const WaveSpectrum& spectrum, CounterStream random) {
    std::vector<Wave> waves;
    double variance = 0;
    for (int i = 0; i < spectrum.waves; ++i) {
        const double k =
            spectrum.lowest * std::pow(spectrum.highest / spectrum.lowest, random.uniform());
        const double x = random.normal(), y = random.normal(), z = random.normal();
        const double turns = k / (2 * std::numbers::pi * std::sqrt(x * x + y * y + z * z));
        const double amplitude = std::pow(k, -spectrum.slope);
        variance += amplitude * amplitude / 2;
        waves.push_back({static_cast<float>(turns * x), static_cast<float>(turns * y),
                         static_cast<float>(turns * z), static_cast<float>(random.uniform()),
                         static_cast<float>(amplitude)});
    }
    for (Wave& wave : waves) wave.amplitude /= static_cast<float>(std::sqrt(variance));
    return waves;
}

/// Returns the sum of waves on the grid `coarse`, whose points are `spacing` pixels apart.
Field sum_waves(const std::vector<Wave>& waves, const Patch& coarse, int spacing) {
    const Longitudes longitudes = longitudes_of(coarse, spacing);
    Field values(coarse.pixels());
    const auto columns = static_cast<std::size_t>(coarse.columns);
    const float* const cosine = longitudes.cosine.data();
    const float* const sine = longitudes.sine.data();
    for (int r = 0; r < coarse.rows; ++r) {
        const double angle = latitude_of((coarse.row + r) * spacing) * kDegree;
        const auto c = static_cast<float>(std::cos(angle));
        const auto s = static_cast<float>(std::sin(angle));
        float* const row = &values[coarse.at(r, 0)];
        for (const Wave& wave : waves) {
            const float x = wave.x * c, y = wave.y * c, z = wave.z * s + wave.phase;
            for (std::size_t i = 0; i < columns; ++i) {
                row[i] += wave.amplitude * cos_2pi(x * cosine[i] + y * sine[i] + z);
            }
        }
    }
    return values;
}

}  // namespace

Field random_field(const WaveSpectrum& spectrum, CounterStream random, const Patch& patch) {
    const int spacing = spectrum.spacing;
    const Patch coarse = coarse_grid_of(patch, spacing);
    const Field values = interpolate_columns(
        sum_waves(draw_waves(spectrum, random), coarse, spacing), coarse, patch, spacing);
    Field result(patch.pixels());
    for (int r = 0; r < patch.rows; ++r) {
        const Stencil stencil = stencil_of(patch.grid_row(r), spacing);
        const float* const v = &values[patch.at(stencil.first - coarse.row, 0)];
        float* const row = &result[patch.at(r, 0)];
        const auto columns = static_cast<std::size_t>(patch.columns);
        for (std::size_t c = 0; c < columns; ++c) {
            row[c] = stencil.weights[0] * v[c] + stencil.weights[1] * v[c + columns] +
                     stencil.weights[2] * v[c + 2 * columns] +
                     stencil.weights[3] * v[c + 3 * columns];
        }
    }
    return result;
}

Surface make_surface() {
    const Patch whole{0, 0, kClimateRows, kClimateColumns};
    const CounterStream random(kPlanetSeed, RandomPurpose::climate, kPlanetStream);
    const WaveSpectrum spectrum{96, 2, 40, 1.3, 2};  // waves, lowest, highest, slope, spacing
    Surface surface{random_field(spectrum, random, whole), {}};
    surface.land.resize(whole.pixels());
    for (int row = 0; row < kClimateRows; ++row) {
        const double latitude = latitude_of(row);
        for (int column = 0; column < kClimateColumns; ++column) {
            const std::size_t k = Surface::at(row, column);
            const double height = height_of(surface.height[k] - kLandThreshold, latitude);
            surface.height[k] = static_cast<float>(height);
            surface.land[k] = height > 0;
        }
    }
    return surface;
}

}  // namespace hpcai::data::climate
