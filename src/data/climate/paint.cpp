// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "snapshot.hpp"

namespace hpcai::data::climate {
namespace {

constexpr double kAirDensity = 1.12;  // kg/m^3 near the sea
constexpr double kInflow = 0.32;      // ratio of radial to tangential wind of a vortex
// In this file, `s` is the snapshot, `k` the index of a pixel and `o` its offset from an event.

/// The position of a pixel relative to an event, in metres.
struct Offset {
    double east = 0, north = 0, distance = 0;
};

double square(double x) {
    return x * x;
}

void add(float& value, double change) {
    value = static_cast<float>(value + change);
}

double gauss(double squared_distance, double width) {
    return std::exp(-squared_distance / (2 * width * width));
}

struct Circle {
    double latitude = 0, longitude = 0;
    double radius = 0;  // m
};

/// Calls action(pixel, offset) for every pixel of the patch within the circle.
template <typename Action>
void for_each_within(const Patch& patch, const Circle& circle, const Action& action) {
    for (int r = 0; r < patch.rows; ++r) {
        const double latitude = patch.latitude(r);
        const double north = (latitude - circle.latitude) * kMetresPerDegree;
        if (std::fabs(north) > circle.radius) continue;
        const double metres_per_degree =
            kMetresPerDegree * std::cos(0.5 * (latitude + circle.latitude) * kDegree);
        for (int c = 0; c < patch.columns; ++c) {
            double degrees = patch.grid_column(c) * kDegreesPerColumn - circle.longitude;
            if (degrees > 180) degrees -= 360;
            if (degrees < -180) degrees += 360;
            const double east = degrees * metres_per_degree;
            if (std::fabs(east) > circle.radius) continue;
            const double distance = std::sqrt(east * east + north * north);
            if (distance <= circle.radius) action(patch.at(r, c), Offset{east, north, distance});
        }
    }
}

void paint_vortex_winds(const Vortex& v, Snapshot& s, std::size_t k, const Offset& o) {
    const double hemisphere = v.latitude > 0 ? 1 : -1;
    const double coriolis = 2 * kRotationRate * std::fabs(std::sin(v.latitude * kDegree));
    const double d = std::max(o.distance, 5e3);
    const double ratio = std::pow(v.wind_radius / d, v.shape), rim = std::exp(-ratio);
    const double outside = std::exp(-square(square(d / (1.25 * v.outer_radius))));
    add(s.pressure[k], -v.drop * (1 - rim) * outside);
    const double wind =
        (std::sqrt(v.shape * v.drop / kAirDensity * ratio * rim + 0.25 * square(d * coriolis)) -
         0.5 * d * coriolis) *
        outside;
    add(s.eastward[k], wind * (-hemisphere * o.north - kInflow * o.east) / d);
    add(s.northward[k], wind * (hemisphere * o.east - kInflow * o.north) / d);
}

void paint_vortex(const Vortex& v, Snapshot& s) {
    const double hemisphere = v.latitude > 0 ? 1 : -1, size = v.outer_radius;
    for_each_within(
        s.patch, {v.latitude, v.longitude, 2.2 * size}, [&](std::size_t k, const Offset& o) {
            paint_vortex_winds(v, s, k, o);
            const double d = std::max(o.distance, 5e3), d2 = d * d;
            const double angle = std::atan2(o.north, o.east);
            const double band = 1 + 0.45 * std::cos(2 * (hemisphere * angle + v.rotation) +
                                                    6 * std::log(d / v.wind_radius + 0.3));
            const double moist = gauss(d2, 0.55 * size);
            add(s.temperature_500[k], 4.2 * v.strength * gauss(d2, 0.30 * size));
            add(s.temperature_200[k], 6.5 * v.strength * gauss(d2, 0.35 * size));
            add(s.water[k], (10 + 14 * v.strength) * moist * (0.7 + 0.3 * band));
            add(s.rain[k], (1.5e-6 * v.strength + 1.5e-7) * band *
                               std::exp(-std::pow(d / (0.33 * size), 1.5)));
            add(s.humidity[k], 0.0018 * moist);
            add(s.height_anomaly[k], 70 * v.strength * gauss(d2, 0.7 * size));
            add(s.surface_temperature[k], -0.6 * v.strength * moist);
        });
}

void paint_fronts(const Low& low, Snapshot& s, std::size_t k, const Offset& o) {
    const double hemisphere = low.latitude > 0 ? 1 : -1, size = low.size, drop = low.drop;
    const double poleward = hemisphere * o.north;
    const double warm =
        gauss(square(o.east - 0.9 * size) + square(poleward + 0.6 * size), 0.9 * size);
    const double cold =
        gauss(square(o.east + 1.0 * size) + square(poleward + 0.5 * size), 0.9 * size);
    add(s.surface_temperature[k], 0.0016 * drop * (0.6 * warm - 0.9 * cold));
    add(s.temperature_500[k], 0.0010 * drop * (warm - cold));
    const double angle = std::atan2(poleward, o.east), radius = o.distance / size;
    const double arm = std::exp(-square((angle + 0.9 + 0.55 * (radius - 0.8)) / 0.38)) *
                       std::exp(-square((radius - 1.3) / 0.9));
    const double ring = std::exp(-square(radius - 0.5) / 0.18) * (o.east > -0.2 * size ? 1 : 0.2);
    add(s.water[k], 0.0042 * drop * arm - 0.0022 * drop * cold);
    add(s.rain[k], drop * (1.56e-10 * arm + 6e-11 * ring));
}

void paint_low(const Low& low, Snapshot& s) {
    const double hemisphere = low.latitude > 0 ? 1 : -1;
    const double coriolis = 2 * kRotationRate * std::fabs(std::sin(low.latitude * kDegree));
    for_each_within(s.patch, {low.latitude, low.longitude, 4.2 * low.size},
                    [&](std::size_t k, const Offset& o) {
                        const double x = o.east / low.eccentricity, y = o.north * low.eccentricity;
                        const double depth = low.drop * gauss(x * x + y * y, low.size);
                        const double gradient_x = depth * x / low.eccentricity / square(low.size);
                        const double gradient_y = depth * y * low.eccentricity / square(low.size);
                        add(s.pressure[k], -depth);
                        add(s.eastward[k], -0.62 * hemisphere * gradient_y / (1.15 * coriolis));
                        add(s.northward[k], 0.62 * hemisphere * gradient_x / (1.15 * coriolis));
                        const double trough =
                            low.drop *
                            gauss(square(o.east + low.tilt) + square(o.north), 1.35 * low.size);
                        add(s.height_anomaly[k], -0.075 * trough);
                        add(s.temperature_500[k], -0.0016 * trough);
                        add(s.temperature_200[k], 0.0022 * trough);
                        paint_fronts(low, s, k, o);
                    });
}

/// Points of a plume's path, (longitude, latitude) in degrees.
struct Path {
    explicit Path(const Plume& plume) {
        for (int step = 0; step <= kPathSteps; ++step) {
            const double q = static_cast<double>(step) / kPathSteps;
            longitude.push_back(plume.longitude_at(q));
            latitude.push_back(plume.latitude_at(q));
        }
    }
    std::vector<double> longitude, latitude;
};

/// The point of a path nearest to a pixel, and the direction of the path there.
struct Nearest {
    double q = 0;                    // fraction of the path
    double squared_distance = 1e12;  // m^2; pixels 1000 km away or more are not affected
    double east = 0, north = 0;      // unit vector
};

Nearest nearest_on(const Path& path, double latitude, double longitude) {
    const double cosine = std::cos(latitude * kDegree);
    const auto east_of = [&](std::size_t step) {
        return (longitude - path.longitude[step]) * kMetresPerDegree * cosine;
    };
    const auto north_of = [&](std::size_t step) {
        return (latitude - path.latitude[step]) * kMetresPerDegree;
    };
    Nearest nearest;
    std::size_t best = 0;
    for (std::size_t step = 0; step <= kPathSteps; ++step) {
        const double squared = square(north_of(step)) + square(east_of(step));
        if (squared >= nearest.squared_distance) continue;
        nearest.squared_distance = squared;
        best = step;
    }
    const std::size_t before = best > 0 ? best - 1 : 0;
    const std::size_t after = std::min<std::size_t>(best + 1, kPathSteps);
    const double steps = static_cast<double>(after - before);
    const double east = (east_of(before) - east_of(after)) / steps;
    const double north = (north_of(before) - north_of(after)) / steps;
    const double length = std::hypot(east, north);
    nearest.east = east / length;
    nearest.north = north / length;
    // Interpolate between the points of the path, so that the plume has no steps.
    const double along = east_of(best) * nearest.east + north_of(best) * nearest.north;
    const double low = best > 0 ? -0.5 : 0, high = best < kPathSteps ? 0.5 : 0;
    const double moved = std::clamp(along / length, low, high);
    nearest.q = (static_cast<double>(best) + moved) / kPathSteps;
    nearest.squared_distance -= square(along) - square(along - moved * length);
    return nearest;
}

void paint_plume_pixel(const Plume& plume, const Nearest& nearest, Snapshot& s, std::size_t k) {
    const double share = gauss(nearest.squared_distance, plume.width) * Plume::profile(nearest.q);
    const double water = plume.water * share;
    add(s.water[k], water);
    add(s.eastward[k], 0.85 * water * nearest.east);
    add(s.northward[k], 0.85 * water * nearest.north);
    add(s.rain[k], 2.2e-8 * water * smooth_step(0.3, 1, nearest.q));
    add(s.humidity[k], 0.0016 * share);
    add(s.temperature_500[k], 1.5 * share);
}

void paint_plume(const Plume& plume, Snapshot& s) {
    constexpr double kNorthMargin = 8, kEastMargin = 15;  // degrees around the path's ends
    const Path path(plume);
    const auto [south, north] = std::minmax(plume.latitude_0, plume.latitude_1);
    const auto [west, east] = std::minmax(plume.longitude_0, plume.longitude_1);
    for (int r = 0; r < s.patch.rows; ++r) {
        const double latitude = s.patch.latitude(r);
        if (latitude < south - kNorthMargin || latitude > north + kNorthMargin) continue;
        for (int c = 0; c < s.patch.columns; ++c) {
            const double longitude = s.patch.grid_column(c) * kDegreesPerColumn;
            if (longitude < west - kEastMargin || longitude > east + kEastMargin) continue;
            const Nearest nearest = nearest_on(path, latitude, longitude);
            if (nearest.squared_distance > square(4 * plume.width)) continue;
            paint_plume_pixel(plume, nearest, s, s.patch.at(r, c));
        }
    }
}

}  // namespace

void paint(const Weather& weather, Snapshot& snapshot) {
    for (const Plume& plume : weather.plumes) paint_plume(plume, snapshot);
    for (const Vortex& vortex : weather.vortices) paint_vortex(vortex, snapshot);
    for (const Low& low : weather.lows) paint_low(low, snapshot);
}

}  // namespace hpcai::data::climate
