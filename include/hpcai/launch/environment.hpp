// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include <hpcai/context/run_context.hpp>

namespace hpcai::launch {

/// A run whose program was built with fault injection has the key kFaultsFact in its environment
/// record. SampleSets::disqualifications has kFaultsDisqualification, so it cannot be ranked.
inline constexpr const char* kFaultsFact = "faults";
inline constexpr const char* kFaultsDisqualification =
    "a program that was built to inject faults took part";

/// Adds kFaultsDisqualification to `samples` unless they have it. Call it if this program, or one
/// that took part in an earlier launch of the run (kFaultsFact), was built with fault injection.
void add_fault_injection_disqualification(data::SampleSets& samples);

/// Returns the SHA-256 of the running program, or "unreadable".
std::string binary_digest();

/// Returns the libraries that LD_PRELOAD and the file `path` name; empty if there are none.
std::string preloaded_libraries(const std::string& path = "/etc/ld.so.preload");

/// Returns results::placement_options() of the nearest ancestor process that is mpirun or mpiexec,
/// separated by blanks; empty without any. Other arguments may hold secrets. `processes` is procfs.
std::string launcher_options(const std::filesystem::path& processes = "/proc");

/// Returns facts about program, machine and launch, with LD_PRELOAD and allow-listed environment
/// variables. Other variables may hold secrets and are never copied. Collective: preloaded
/// libraries are those of the last rank that has any; launcher_options() are those of rank 0.
std::map<std::string, std::string> describe_environment(const context::RunContext& context,
                                                        const data::SampleSets& samples,
                                                        const std::string& program_sha256,
                                                        const std::string& command_line,
                                                        comm::Communicator& everyone);

}  // namespace hpcai::launch
