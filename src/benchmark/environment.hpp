// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>

#include "run_context.hpp"

namespace hpcai::benchmark {

/// Of a run in which a program took part that was built to inject faults: the fact in its
/// environment, by which later programs know, and the objection to its data.
inline constexpr const char* kFaultsFact = "faults";
inline constexpr const char* kFaultsObjection =
    "a program that was built to inject faults took part";

/// Adds the objection where `environment`, of the program that began the run, has the fact.
void object_to_faults(const std::map<std::string, std::string>& environment,
                      data::SampleSets& samples);

/// SHA-256 of the running program, or "unreadable".
std::string binary_digest();

/// Allow-listed facts about program, machine and launch; never the whole environment, which may
/// hold secrets.
std::map<std::string, std::string> describe_environment(const Start& start,
                                                        const std::string& command_line);

}  // namespace hpcai::benchmark
