// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

/// Readings of an external power meter.
namespace hpcai::meters {

struct ExternalReading {
    double utc_seconds = 0;  // since 1970, by the meter's clock
    double value = 0;        // watts, or joules of a monotonic counter
    std::size_t line = 0;    // of the file, from 1
};

struct ExternalReadings {
    std::string file;
    bool is_counter = false;  // values are joules
    std::vector<ExternalReading> readings;
};

/// Parses CSV text with the header "time,watts" or "time,joules" and times in a format of
/// parse_utc; `file` is for messages. Throws Error(data) naming file and line for another header,
/// an invalid cell, a time that is not after the previous one, or a counter that decreases; and
/// naming the file for fewer than two readings.
ExternalReadings parse_readings(std::string_view text, std::string_view file);

/// The time over which energy is integrated: the core phase of a run (docs/METRICS.md).
struct Phase {
    double begin_utc_seconds = 0;
    double end_utc_seconds = 0;
};

struct IntegrationSettings {
    double clock_offset_seconds = 0;  // added to the meter's times
    double longest_gap_seconds = 10;  // largest gap allowed between two readings
};

struct MeteredEnergy {
    double joules = 0;
    double average_watts = 0;
    std::size_t readings = 0;        // in the phase, plus at most one before and one after it
    double longest_gap_seconds = 0;  // between two of these readings
};

/// Integrates the energy of the phase: power by the trapezoidal rule, a counter by its difference,
/// with linear interpolation at both ends. Throws Error(data) naming the file if the readings do
/// not cover the phase, and naming file and line if a gap in the phase is longer than allowed.
/// Throws Error(usage) if the phase has no length.
MeteredEnergy integrate(const ExternalReadings& readings, const Phase& phase,
                        const IntegrationSettings& settings);

}  // namespace hpcai::meters
