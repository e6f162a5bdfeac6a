// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>

#include <hpcai/context/run_context.hpp>

namespace hpcai::launch {

/// The key that the environment of a run has if its program can inject faults, and the
/// disqualification of its samples.
inline constexpr const char* kFaultsFact = "faults";
inline constexpr const char* kFaultsDisqualification =
    "a program that was built to inject faults took part";

/// Adds kFaultsDisqualification if `environment`, of the launch that began the run, has that key.
void add_faults_disqualification(const std::map<std::string, std::string>& environment,
                                 data::SampleSets& samples);

/// Returns the SHA-256 of the running program, or "unreadable".
std::string binary_digest();

/// Returns allow-listed facts about program, machine and launch. The whole environment may hold
/// secrets and is never copied.
std::map<std::string, std::string> describe_environment(const context::RunContext& context,
                                                        const data::SampleSets& samples,
                                                        const std::string& program_sha256,
                                                        const std::string& command_line);

}  // namespace hpcai::launch
