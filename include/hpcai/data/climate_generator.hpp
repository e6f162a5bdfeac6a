// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <hpcai/data/box.hpp>
#include <hpcai/data/climate_channels.hpp>
#include <hpcai/data/sample_set.hpp>

namespace hpcai::data {

inline constexpr int kMinClimateSide = 64;  // pixels, of a window

/// How the elements of one sample's fields lie in memory.
enum class FieldLayout : std::uint8_t { channels_first, channels_last };

/// What a ClimateGenerator draws.
struct ClimateSettings {
    int height = kClimateRows;    // pixels of the grid of 768 x 1152; less: a window cut from it
    int width = kClimateColumns;  // likewise
    std::uint64_t seed = 1;
    double amplitude = 1;        // of what an event does to the fields
    double event_rate = 1;       // times the usual number of events
    double distractor_rate = 1;  // times the usual number of unlabelled look-alikes
    /// Standard deviation of the logarithm of an event's strength in the snapshot over the strength
    /// that decided its category: storms are named for what they are at their strongest. The
    /// normal is cut at two deviations, here and of extents.
    double intensity_spread = 0.6;
    double extent_spread = 0.25;  // likewise of a box's sides over those of the visible structure
    double label_dropout = 0.1;   // chance that an event's box is missing
    double event_windows = 0.9;   // share of windows that are laid around an event
    double kept_share = 0.6;      // of a box that a window must hold for the label to stay
};

/// A place in the grid.
struct ClimateWindow {
    int row = 0;     // of the first row, from the south pole
    int column = 0;  // of the first column
};

/// Made-up snapshots of the weather in the channels, units and statistics of the ExtremeWeather
/// data (CAM5, 0.23 x 0.31 degrees), with labelled boxes. A sample is a function of the settings,
/// the split and its number alone; the planet's coasts and mountains are always the same. A
/// window's fields are those of the whole grid at its pixels, and cost their share of it.
/// No box crosses 0 degrees of longitude. With both spreads and the dropout 0 every box is a
/// function of the visible structure; else no detector finds them all, as in labelled real data.
class ClimateGenerator {
public:
    /// Throws Error(usage) for settings out of range: height 64 to 768, width 64 to 1152,
    /// amplitude and rates from 0 to 10, spreads from 0 to 2, the others from 0 to 1.
    explicit ClimateGenerator(const ClimateSettings& settings);
    ~ClimateGenerator();

    const ClimateSettings& settings() const { return settings_; }
    /// Elements of one sample's fields.
    std::size_t elements() const;

    /// Writes sample `number` of `split`: the fields, (16, height, width) or (height, width, 16) in
    /// fp32 and physical units, and at most kMaxClimateBoxes boxes in pixels of the window, at
    /// least 8 pixels a side. Boxes have whole edges. Safe to call from many threads.
    void sample(Split split, std::uint32_t number, FieldLayout layout, std::span<float> fields,
                std::vector<Box>& boxes) const;
    /// Where the sample lies in the grid.
    ClimateWindow window(Split split, std::uint32_t number) const;
    /// The sample's boxes without its fields, in a small part of the time.
    std::vector<Box> boxes(Split split, std::uint32_t number) const;

private:
    struct Planet;
    struct Draw;

    Draw draw(Split split, std::uint32_t number) const;

    ClimateSettings settings_;
    std::unique_ptr<const Planet> planet_;
};

}  // namespace hpcai::data
