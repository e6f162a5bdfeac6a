// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <iosfwd>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include <hpcai/config/config.hpp>

/// The standard output of a run. With run.progress: json it has events, one JSON object per line.
namespace hpcai::results {

/// Returns where a run prints its text: `out`, or standard error if `out` has events.
std::ostream& text_stream(const config::Config& config, std::ostream& out);

/// Returns an event with its time, its result `directory` and `values`. `repetition` is the number
/// of the run in its series; 0, printed as null, for a single run. Replaces invalid UTF-8.
std::string event_line(const char* event, const std::filesystem::path& directory, int repetition,
                       const nlohmann::ordered_json& values);

}  // namespace hpcai::results
