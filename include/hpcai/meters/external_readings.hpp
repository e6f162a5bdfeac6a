// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

/// What a meter outside the machine has recorded.
namespace hpcai::meters {

struct ExternalReading {
    double utc_seconds = 0;  // since 1970, by the meter's clock
    double value = 0;        // watts, or joules of a counter that only grows
    std::size_t line = 0;    // of the file, from 1
};

struct ExternalReadings {
    std::string file;
    bool is_counter = false;  // values are joules
    std::vector<ExternalReading> readings;
};

/// Reads a CSV file whose header is "time,watts" or "time,joules"; times are as parse_utc reads
/// them. Throws Error(data) naming file and line for another header, a cell that is no such number,
/// a time that is not after the one before, a counter that goes back, or fewer than two readings.
ExternalReadings parse_readings(std::string_view text, std::string_view file);

struct Phase {
    double begin_utc_seconds = 0;
    double end_utc_seconds = 0;
};

struct IntegrationSettings {
    double clock_offset_seconds = 0;  // to be added to the meter's times
    double longest_gap_seconds = 10;  // between two readings
};

struct MeteredEnergy {
    double joules = 0;
    double average_watts = 0;
    std::size_t readings = 0;        // in the phase, and those on both sides of it
    double longest_gap_seconds = 0;  // between two of these
};

/// The energy of the phase: watts by trapezoids, a counter by the difference; at both ends
/// interpolated linearly between two readings. Throws Error(data) naming the file, and the line
/// where there is one, when the readings do not cover the phase or are further apart in it than
/// the settings allow; Error(usage) when the phase has no length.
MeteredEnergy integrate(const ExternalReadings& readings, const Phase& phase,
                        const IntegrationSettings& settings);

}  // namespace hpcai::meters
