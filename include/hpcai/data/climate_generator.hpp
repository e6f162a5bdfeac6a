// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <hpcai/data/climate_channels.hpp>
#include <hpcai/data/image.hpp>
#include <hpcai/data/sample_set.hpp>

namespace hpcai::data {

namespace climate {
struct Surface;
}

inline constexpr int kMinClimateSide = 64;  // pixels, of a window

/// The memory layout of one sample's fields.
enum class FieldLayout : std::uint8_t { channels_first, channels_last };

/// Settings of a ClimateGenerator.
struct ClimateSettings {
    int height = kClimateRows;    // pixels; a size below 768 x 1152 is a window of that grid
    int width = kClimateColumns;  // likewise
    std::uint64_t seed = 1;
    double amplitude = 1;        // factor for the effect of events on the fields
    double event_rate = 1;       // factor for the number of events
    double distractor_rate = 1;  // factor for the number of unlabelled look-alikes
    /// Standard deviation of the logarithm of the ratio between the strength of an event in the
    /// snapshot and its maximum strength, which determines its category. The normal distribution is
    /// truncated at two deviations, here and for extents. Atmospheric rivers use half the value.
    double intensity_spread = 0.6;
    double extent_spread = 0.25;  // likewise: side of a box relative to the visible structure
    double label_dropout = 0.1;   // probability that the box of an event is missing
    double event_windows = 0.9;   // probability that a window is placed around an event
    double kept_share = 0.6;  // a box is kept if at least this share of its area is in the window
};

/// The position of a window in the grid.
struct ClimateWindow {
    int row = 0;     // of the first row, from the south pole
    int column = 0;  // of the first column
};

/// Synthetic weather snapshots in the channels, units and statistics of the ExtremeWeather data
/// (CAM5, 0.23 x 0.31 degrees), with labelled boxes. A sample is a function of settings, split and
/// number; coasts and mountains are always the same. The fields of a window equal those of the
/// whole grid at the same pixels, and cost in proportion to its size. No box crosses 0 degrees of
/// longitude. If both spreads and the dropout are 0, boxes are a function of the visible structure;
/// otherwise no detector can find all of them, as in labelled real data.
class ClimateGenerator {
public:
    /// Throws Error(usage) for settings out of range: height 64 to 768, width 64 to 1152, amplitude
    /// and rates 0 to 10, spreads 0 to 2, dropout, event_windows and kept_share 0 to 1.
    explicit ClimateGenerator(const ClimateSettings& settings);

    const ClimateSettings& settings() const { return settings_; }
    /// Returns the number of elements of one sample's fields.
    std::size_t elements() const;

    /// Writes sample `number` of `split`. `fields` are (16, height, width) or (height, width, 16)
    /// in fp32 and physical units. `boxes` are at most kMaxClimateBoxes boxes in pixels of the
    /// window, with whole edges and sides of at least 8 pixels. May be called from many threads.
    void sample(Split split, std::uint32_t number, FieldLayout layout, std::span<float> fields,
                std::vector<Box>& boxes) const;
    /// Returns the position of the sample in the grid.
    ClimateWindow window(Split split, std::uint32_t number) const;
    /// Returns the sample's boxes without making its fields, which is much faster.
    std::vector<Box> boxes(Split split, std::uint32_t number) const;

private:
    struct Draw;

    Draw draw(Split split, std::uint32_t number) const;

    ClimateSettings settings_;
    std::shared_ptr<const climate::Surface> surface_;
};

}  // namespace hpcai::data
