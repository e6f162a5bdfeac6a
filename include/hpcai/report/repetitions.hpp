// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <hpcai/records/repetitions_record.hpp>

namespace hpcai::report {

/// Returns the index of the run with the median VFLOPS (of an even number of runs, the lower
/// median) among the runs that count and have VFLOPS; 0 if there are none.
std::size_t median_repetition(const RepetitionsRecord& record);

/// Returns the line "REPETITIONS ..." with the numbers of the run of median_repetition(). They are
/// "n/a" if that run does not count. `digest` is the SHA-256 of repetitions.json.
std::string repetitions_line(const RepetitionsRecord& record, std::string_view digest);

/// Returns the values of repetitions_line(), and why runs are missing, as a JSON object. A missing
/// number is null.
nlohmann::ordered_json repetitions_json(const RepetitionsRecord& record, std::string_view digest);

/// A table of the runs with their statistics, followed by repetitions_line().
std::string repetitions_table(const RepetitionsRecord& record, std::string_view digest);

}  // namespace hpcai::report
