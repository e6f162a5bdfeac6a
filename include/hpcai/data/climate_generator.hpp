// SPDX-License-Identifier: Apache-2.0
#pragma once

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

struct ClimateSettings {
    int height = kClimateRows;    // pixels; a smaller size makes windows of the full grid
    int width = kClimateColumns;  // pixels
    std::uint64_t seed = 1;
    double amplitude = 1;        // factor of the effect of events (storms) on the fields
    double event_rate = 1;       // factor of the number of events
    double distractor_rate = 1;  // factor of the number of unlabelled storm-like patterns
    /// Standard deviation of log(strength in the snapshot / typical strength) of an event; each
    /// category has its range of typical strengths. The normal distribution is clamped to two
    /// deviations, here and for extent_spread. Atmospheric rivers use half of intensity_spread.
    double intensity_spread = 0.6;
    double extent_spread = 0.25;  // standard deviation of log(side of box / side of the event)
    double label_dropout = 0.1;   // probability that the box of an event is missing
    double event_windows = 0.9;   // probability that a window is placed around an event
    double kept_share = 0.6;      // a box with a smaller share of its area in the window is removed
};

/// A setting whose value is from 0 to `maximum`.
struct ClimateNumber {
    const char* name;  // of the setting, and of the attribute in generated files
    double ClimateSettings::*setting;
    double maximum;
    const char* meaning;  // for the help
};

inline constexpr std::array<ClimateNumber, 8> kClimateNumbers{{
    {"amplitude", &ClimateSettings::amplitude, 10, "factor of the effect of storms on the fields"},
    {"event_rate", &ClimateSettings::event_rate, 10, "factor of the number of storms"},
    {"distractor_rate", &ClimateSettings::distractor_rate, 10,
     "factor of the number of unlabelled patterns that resemble storms"},
    {"intensity_spread", &ClimateSettings::intensity_spread, 2,
     "standard deviation of log(visible strength of a storm)"},
    {"extent_spread", &ClimateSettings::extent_spread, 2,
     "standard deviation of log(side of a box)"},
    {"label_dropout", &ClimateSettings::label_dropout, 1, "probability that a storm has no box"},
    {"event_windows", &ClimateSettings::event_windows, 1,
     "fraction of windows placed around a storm"},
    {"kept_share", &ClimateSettings::kept_share, 1,
     "fraction of a box that a window must contain to keep the box"},
}};

/// Returns the settings of data.kind climate_synthetic.
ClimateSettings climate_settings(const config::Config& config);

/// The position of a window in the grid.
struct ClimateWindow {
    int row = 0;     // of the first row, from the south pole
    int column = 0;  // of the first column
};

/// Generates synthetic weather snapshots with labelled boxes, with channels, units and statistics
/// like the ExtremeWeather data (CAM5, 0.23 x 0.31 degrees). A sample is a function of settings,
/// split and number; coasts and mountains are always the same. The fields of a window equal those
/// of the full grid at the same pixels; a smaller window costs less. No box crosses 0 degrees of
/// longitude. If intensity_spread, extent_spread and label_dropout are 0, boxes are a function of
/// the visible events; otherwise no detector can find all boxes, as in real data.
class ClimateGenerator {
public:
    /// Throws Error(usage) unless the height is from 64 to 768 and the width from 64 to 1152. The
    /// other settings must be in the ranges of kClimateNumbers.
    explicit ClimateGenerator(const ClimateSettings& settings);

    const ClimateSettings& settings() const { return settings_; }
    /// Returns the number of elements of one sample's fields.
    std::size_t elements() const;

    /// Writes sample `number` of `split`. `fields` are (16, height, width) or (height, width, 16)
    /// in fp32 and physical units. Returns at most kMaxClimateBoxes `boxes` in pixels of the
    /// window, with integer edges and sides of at least 8 pixels. Thread-safe.
    void sample(Split split, std::uint32_t number, FieldLayout layout, std::span<float> fields,
                std::vector<Box>& boxes) const;
    /// Returns the position of the sample's window in the grid.
    ClimateWindow window(Split split, std::uint32_t number) const;
    /// Returns the sample's boxes. Much faster than sample(), because it makes no fields.
    std::vector<Box> boxes(Split split, std::uint32_t number) const;

private:
    ClimateSettings settings_;
    std::shared_ptr<const climate::Surface> surface_;
};

}  // namespace hpcai::data
