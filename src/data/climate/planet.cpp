// SPDX-License-Identifier: Apache-2.0
#include "grid.hpp"
#include "sphere_waves.hpp"

namespace hpcai::data::climate {
namespace {

constexpr std::uint64_t kPlanetSeed = 12345;
constexpr std::uint32_t kPlanetStream = 0xFFFFFFFF;  // where samples have their split
constexpr double kLandThreshold = 0.62;  // standard deviations; 27 % of a normal field is higher
constexpr double kMaxHeight = 5200;      // m

double height_of(double rise, double latitude) {
    const double south = -70 - latitude;  // degrees within the southern ice cap
    if (south > 0) return std::min(900 + 90 * south, kMaxHeight);
    return rise > 0 ? std::min(1150 * std::pow(rise, 2.2), kMaxHeight) : 0.0;
}

}  // namespace

Surface make_surface() {
    const Patch whole{0, 0, kClimateRows, kClimateColumns};
    const SphereWaves waves({96, 2, 40, 1.3, 2},
                            CounterStream(kPlanetSeed, RandomPurpose::climate, kPlanetStream));
    Surface surface{waves.evaluate(whole), {}};
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
