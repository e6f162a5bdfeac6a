// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include <hpcai/data/climate_generator.hpp>

#include "snapshot.hpp"

namespace hpcai::data {
namespace {

using climate::Extent;
using climate::Label;
using climate::SampleKey;
using climate::Weather;

// Random streams of a sample; snapshot.cpp has those of the background.
constexpr std::uint32_t kEventStream = 0;
constexpr std::uint32_t kWindowStream = 1;
constexpr float kMinBoxSide = 8;  // pixels, of a box

/// Weights, by category, with which an event is chosen for a window; rare categories weigh more.
constexpr std::array<double, kClimateCategories> kFocusWeights{2.5, 1.5, 1, 5};

void require_side(const char* name, int value, int maximum) {
    require(value >= kMinClimateSide && value <= maximum, ExitCode::usage,
            "climate generator: {}: expected {} to {}, got {}", name, kMinClimateSide, maximum,
            value);
}

/// Returns the first pixel of a random window of `size` out of `extent` pixels, uniform among the
/// windows that contain [low, high) or lie inside it. If there is none, uses the nearest window.
int place_window(double low, double high, int size, int extent, CounterStream& random) {
    const double low_bound = std::min(high - size, low), high_bound = std::max(high - size, low);
    const int first = std::max(0, static_cast<int>(std::ceil(low_bound)));
    const int last = std::min(extent - size, static_cast<int>(std::floor(high_bound)));
    const double share = random.uniform();
    if (last < first) return std::clamp(static_cast<int>(std::lround(low_bound)), 0, extent - size);
    return first + std::min(static_cast<int>(share * (last - first + 1)), last - first);
}

/// Returns a random label, preferably of a rare category; null if there are no labels.
const Label* choose_focus(const std::vector<Label>& labels, CounterStream& random) {
    const auto weight = [](const Label& label) {
        return kFocusWeights[static_cast<int>(label.category) - 1];
    };
    double total = 0;
    for (const Label& label : labels) total += weight(label);
    double rest = total * random.uniform();
    for (const Label& label : labels) {
        rest -= weight(label);
        if (rest < 0) return &label;
    }
    return nullptr;
}

ClimateWindow choose_window(const ClimateSettings& settings, const std::vector<Label>& labels,
                            CounterStream random) {
    const bool around_event = random.uniform() < settings.event_windows;
    const Label* const focus = choose_focus(labels, random);
    const Extent anywhere{0, 0, kClimateColumns, kClimateRows};
    const Extent& target = around_event && focus != nullptr ? focus->extent : anywhere;
    return {place_window(target.top, target.bottom, settings.height, kClimateRows, random),
            place_window(target.left, target.right, settings.width, kClimateColumns, random)};
}

std::vector<Box> visible_boxes(const ClimateSettings& settings, const std::vector<Label>& labels,
                               const ClimateWindow& window) {
    std::vector<Box> boxes;
    const auto left = static_cast<double>(window.column), top = static_cast<double>(window.row);
    const Extent frame{left, top, left + settings.width, top + settings.height};
    for (const Label& label : labels) {
        const Extent seen = label.visible_in(frame);
        if (label.dropped || seen.area() <= 0) continue;
        if (seen.area() < settings.kept_share * label.extent.area()) continue;
        const Box box{static_cast<float>(std::floor(seen.left - left)),
                      static_cast<float>(std::floor(seen.top - top)),
                      static_cast<float>(std::ceil(seen.right - left)),
                      static_cast<float>(std::ceil(seen.bottom - top)),
                      static_cast<std::int32_t>(label.category)};
        if (box.x2 - box.x1 >= kMinBoxSide && box.y2 - box.y1 >= kMinBoxSide) boxes.push_back(box);
    }
    return boxes;
}

/// The random choices of a sample, except for the background.
struct DrawnSample {
    SampleKey key;
    Weather weather;
    ClimateWindow window;

    DrawnSample(const ClimateSettings& settings, const climate::Surface& surface, Split split,
                std::uint32_t number)
        : key{settings.seed, split, number},
          weather(climate::draw_weather(settings, surface, key.stream(kEventStream))),
          window(choose_window(settings, weather.labels, key.stream(kWindowStream))) {}
    std::vector<Box> boxes(const ClimateSettings& settings) const {
        return visible_boxes(settings, weather.labels, window);
    }
};

}  // namespace

ClimateGenerator::ClimateGenerator(const ClimateSettings& settings) : settings_(settings) {
    require_side("height", settings.height, kClimateRows);
    require_side("width", settings.width, kClimateColumns);
    surface_ = std::make_shared<const climate::Surface>(climate::make_surface());
}

std::size_t ClimateGenerator::elements() const {
    return std::size_t{kClimateChannels} * settings_.height * settings_.width;
}

ClimateWindow ClimateGenerator::window(Split split, std::uint32_t number) const {
    return DrawnSample(settings_, *surface_, split, number).window;
}

std::vector<Box> ClimateGenerator::boxes(Split split, std::uint32_t number) const {
    return DrawnSample(settings_, *surface_, split, number).boxes(settings_);
}

void ClimateGenerator::sample(Split split, std::uint32_t number, FieldLayout layout,
                              std::span<float> fields, std::vector<Box>& boxes) const {
    ensure(fields.size() == elements(), "{} values for a buffer of {}", elements(), fields.size());
    const DrawnSample drawn(settings_, *surface_, split, number);
    const climate::Patch patch{drawn.window.row - 1, drawn.window.column - 1, settings_.height + 2,
                               settings_.width + 2};
    climate::Snapshot snapshot =
        climate::make_background(patch, *surface_, drawn.weather.season, drawn.key);
    climate::paint(drawn.weather, snapshot);
    climate::diagnose(snapshot, *surface_, layout, fields);
    boxes = drawn.boxes(settings_);
}

}  // namespace hpcai::data
