// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "snapshot.hpp"

namespace hpcai::data::climate {
namespace {

constexpr double kVisibleShare = 0.35;  // share of Plume::water at the edge of a plume's box
constexpr double kPlumeRadius = 3.5e5;  // m, of the areas reserved along a plume's path
constexpr double kMinExtent = 8;        // pixels
constexpr int kVortexTries = 40;
constexpr int kPlumeTries = 20;

constexpr double kMaxDeviations = 2;   // standard deviations, limit of normal random numbers
constexpr double kTypicalDrop = 4000;  // Pa, of a cyclone

struct VortexKind {
    double drop_low, drop_high;      // of pressure, at typical strength, Pa
    double radius_low, radius_high;  // of the strongest wind, m
    double shape_low, shape_high;    // Vortex::shape
    double outer_low, outer_high;    // Vortex::outer_radius, m
};
constexpr VortexKind kCyclone{1500, 6500, 5e4, 1.2e5, 1.0, 1.7, 4e5, 7e5};
constexpr VortexKind kDepression{500, 1300, 7e4, 1.6e5, 0.9, 1.4, 3.5e5, 5.5e5};
constexpr VortexKind kTropicalDistractor{150, 450, 7e4, 1.6e5, 0.9, 1.4, 3.5e5, 5.5e5};

double metres_between(double latitude, double longitude, double other_latitude,
                      double other_longitude) {
    double east = std::fabs(longitude - other_longitude);
    if (east > 180) east = 360 - east;
    return std::hypot((latitude - other_latitude) * kMetresPerDegree,
                      east * kMetresPerDegree * std::cos(other_latitude * kDegree));
}

/// Returns the extent of `radius_y` and `radius_x` metres around a point; pixel i is [i, i + 1).
Extent extent_around(double latitude, double longitude, double radius_y, double radius_x) {
    const double y = row_of(latitude) + 0.5, x = column_of(longitude) + 0.5;
    const double half_y = radius_y / (kMetresPerDegree * kDegreesPerRow);
    const double half_x =
        radius_x / (kMetresPerDegree * std::cos(latitude * kDegree) * kDegreesPerColumn);
    return Extent{x - half_x, y - half_y, x + half_x, y + half_y}.intersection(
        {0, 0, kClimateColumns, kClimateRows});
}

class WeatherDraw {
public:
    WeatherDraw(const ClimateSettings& settings, const Surface& surface, CounterStream random)
        : settings_(settings), surface_(surface), random_(random) {}

    Weather draw() {
        weather_.season = uniform(-1, 1);
        const double events = settings_.event_rate, distractors = settings_.distractor_rate;
        if (random_.uniform() < std::min(1.0, 0.55 * events)) draw_plume(true);
        repeat(1.6 * events, [&] { draw_vortex(kCyclone, ClimateCategory::tropical_cyclone); });
        repeat(1.1 * events,
               [&] { draw_vortex(kDepression, ClimateCategory::tropical_depression); });
        repeat(4.0 * events, [&] { draw_low(true); });
        repeat(2.0 * distractors, [&] { draw_vortex(kTropicalDistractor, std::nullopt); });
        repeat(3.0 * distractors, [&] { draw_low(false); });
        if (random_.uniform() < std::min(1.0, 0.5 * distractors)) draw_plume(false);
        return std::move(weather_);
    }

private:
    struct ReservedArea {
        double latitude, longitude, radius;  // degrees north and east, m
    };

    double uniform(double low, double high) { return low + (high - low) * random_.uniform(); }
    /// Returns exp(spread * n), where n is a standard normal number clamped to two deviations.
    double lognormal_factor(double spread) {
        return std::exp(spread * std::clamp(random_.normal(), -kMaxDeviations, kMaxDeviations));
    }
    /// Returns the ratio of an event's strength in the snapshot to its typical strength. Its mean
    /// would be 1 without the clamp; it is 0.98 at a spread of 0.6 and 0.94 at 1.
    double strength_ratio(double spread) {
        return lognormal_factor(spread) * std::exp(-spread * spread / 2);
    }
    bool bernoulli(double chance = 0.5) { return random_.uniform() < chance; }

    /// Calls `action` a Poisson number of times with mean `mean` (Knuth).
    template <typename Action>
    void repeat(double mean, const Action& action) {
        const double limit = std::exp(-mean);
        int count = 0;
        for (double product = random_.uniform(); product > limit; product *= random_.uniform()) {
            ++count;
        }
        for (int i = 0; i < count; ++i) action();
    }

    bool is_free(const ReservedArea& area) const {
        for (const ReservedArea& other : reserved_) {
            const double metres =
                metres_between(other.latitude, other.longitude, area.latitude, area.longitude);
            if (metres < area.radius + other.radius) return false;
        }
        return true;
    }
    bool reserve(const ReservedArea& area) {
        if (!is_free(area)) return false;
        reserved_.push_back(area);
        return true;
    }
    bool is_land(double latitude, double longitude) const {
        return surface_.land[Surface::at(static_cast<int>(row_of(latitude)),
                                         static_cast<int>(column_of(longitude)))] != 0;
    }

    void add_label(ClimateCategory category, const Extent& extent, std::vector<Extent> parts = {}) {
        const bool dropped = bernoulli(settings_.label_dropout);
        const bool fits =
            extent.right - extent.left >= kMinExtent && extent.bottom - extent.top >= kMinExtent;
        if (!fits || weather_.labels.size() >= kMaxClimateBoxes) return;
        weather_.labels.push_back({category, extent, std::move(parts), dropped});
    }

    /// Returns a random box around an event with radii of `radius_y` and `radius_x` metres.
    Extent draw_box(double latitude, double longitude, double radius_y, double radius_x) {
        // Drawn before the call, because C++ does not order the evaluation of arguments.
        const double reach_x = radius_x * lognormal_factor(settings_.extent_spread);
        const double reach_y = radius_y * lognormal_factor(settings_.extent_spread);
        return extent_around(latitude, longitude, reach_y, reach_x);
    }
    /// Returns the random share of a plume's path that its box omits at one end.
    double draw_omitted_share() {
        return std::min(0.4, std::fabs(lognormal_factor(settings_.extent_spread) - 1) / 2);
    }

    void draw_vortex(const VortexKind& kind, std::optional<ClimateCategory> category) {
        for (int attempt = 0; attempt < kVortexTries; ++attempt) {
            const double hemisphere = bernoulli(0.5 + 0.35 * weather_.season) ? 1 : -1;
            Vortex vortex;
            vortex.latitude = hemisphere * uniform(8, 27);
            vortex.longitude = uniform(6, 354);
            const double typical = uniform(kind.drop_low, kind.drop_high);
            const double drop = typical * strength_ratio(settings_.intensity_spread);
            vortex.drop = settings_.amplitude * drop;
            vortex.wind_radius = uniform(kind.radius_low, kind.radius_high);
            vortex.shape = uniform(kind.shape_low, kind.shape_high);
            vortex.outer_radius = uniform(kind.outer_low, kind.outer_high);
            vortex.rotation = uniform(0, 2 * std::numbers::pi);
            vortex.strength = settings_.amplitude * std::pow(drop / kTypicalDrop, 0.7);
            if (is_land(vortex.latitude, vortex.longitude)) continue;
            if (!reserve({vortex.latitude, vortex.longitude, 1.1 * vortex.outer_radius})) continue;
            weather_.vortices.push_back(vortex);
            const double radius = 0.62 * vortex.outer_radius;
            if (category) {
                add_label(*category, draw_box(vortex.latitude, vortex.longitude, radius, radius));
            }
            return;
        }
    }

    void draw_low(bool labelled) {
        for (int attempt = 0; attempt < kVortexTries; ++attempt) {
            Low low;
            const double hemisphere = bernoulli() ? 1 : -1;
            low.latitude = hemisphere * uniform(33, 64);
            low.longitude = uniform(12, 348);
            const double typical = labelled ? uniform(1400, 4200) : uniform(400, 1100);
            low.drop = settings_.amplitude * typical * strength_ratio(settings_.intensity_spread);
            low.size = uniform(3e5, 5.5e5);
            low.eccentricity = uniform(0.75, 1.3);
            low.tilt = uniform(3e5, 6e5);
            if (!reserve({low.latitude, low.longitude, 1.7 * low.size})) continue;
            weather_.lows.push_back(low);
            if (labelled) {
                add_label(ClimateCategory::extratropical_cyclone,
                          draw_box(low.latitude, low.longitude, 1.7 * low.size / low.eccentricity,
                                   1.7 * low.size * low.eccentricity));
            }
            return;
        }
    }

    /// Draws a plume to the coast of North or South America. Without a label, it ends at sea.
    Plume random_plume(bool labelled) {
        Plume plume{uniform(18, 26), uniform(185, 205), uniform(36, 52), uniform(228, 242)};
        if (bernoulli(0.45)) {
            plume.latitude_0 *= -1;
            plume.latitude_1 *= -1;
            plume.longitude_0 = uniform(250, 262);
            plume.longitude_1 = uniform(281, 289);
        }
        if (!labelled) {
            const double share = uniform(0.3, 0.8);
            plume.latitude_1 = plume.latitude_at(share);
            plume.longitude_1 = plume.longitude_at(share);
        }
        plume.bend = uniform(-7, 7);
        plume.width = uniform(1.5e5, 2.6e5);
        const double typical = labelled ? uniform(14, 26) : uniform(7, 13);
        plume.water =
            settings_.amplitude * typical * strength_ratio(0.5 * settings_.intensity_spread);
        return plume;
    }

    void draw_plume(bool labelled) {
        for (int attempt = 0; attempt < kPlumeTries; ++attempt) {
            const Plume plume = random_plume(labelled);
            std::vector<ReservedArea> areas;
            for (double q = 0; q <= 1; q += 0.2) {
                areas.push_back({plume.latitude_at(q), plume.longitude_at(q), kPlumeRadius});
            }
            const auto free = [this](const ReservedArea& area) { return is_free(area); };
            if (!std::all_of(areas.begin(), areas.end(), free)) continue;
            reserved_.insert(reserved_.end(), areas.begin(), areas.end());
            weather_.plumes.push_back(plume);
            if (labelled) label(plume);
            return;
        }
    }

    void label(const Plume& plume) {
        std::vector<Extent> parts;
        Extent whole;
        const double first = draw_omitted_share(), last = 1 - draw_omitted_share();
        for (int step = 0; step <= kPathSteps; ++step) {
            const double q = static_cast<double>(step) / kPathSteps;
            if (q < first || q > last) continue;
            const double share = Plume::profile(q);
            if (share <= kVisibleShare) continue;
            const double reach = plume.width * std::sqrt(2 * std::log(share / kVisibleShare));
            parts.push_back(
                extent_around(plume.latitude_at(q), plume.longitude_at(q), reach, reach));
            const Extent& part = parts.back();
            whole = parts.size() == 1 ? part : whole.bounding_box(part);
        }
        add_label(ClimateCategory::atmospheric_river, whole, std::move(parts));
    }

    const ClimateSettings& settings_;
    const Surface& surface_;
    CounterStream random_;
    Weather weather_;
    std::vector<ReservedArea> reserved_;
};

}  // namespace

double Plume::profile(double q) {
    return smooth_step(-0.05, 0.12, q) * (1 - 0.35 * smooth_step(0.7, 1, q));
}

Extent Extent::intersection(const Extent& other) const {
    return {std::max(left, other.left), std::max(top, other.top), std::min(right, other.right),
            std::min(bottom, other.bottom)};
}

Extent Extent::bounding_box(const Extent& other) const {
    return {std::min(left, other.left), std::min(top, other.top), std::max(right, other.right),
            std::max(bottom, other.bottom)};
}

Extent Label::visible_in(const Extent& window) const {
    if (parts.empty()) return extent.intersection(window);
    Extent visible;
    for (const Extent& part : parts) {
        const Extent seen = part.intersection(window);
        if (seen.area() > 0) visible = visible.area() > 0 ? visible.bounding_box(seen) : seen;
    }
    return visible;
}

Weather draw_weather(const ClimateSettings& settings, const Surface& surface,
                     CounterStream random) {
    return WeatherDraw(settings, surface, random).draw();
}

}  // namespace hpcai::data::climate
