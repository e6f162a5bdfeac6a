// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <vector>

#include <hpcai/base/error.hpp>
#include <hpcai/context/devices.hpp>

namespace hpcai::launch {

/// The facts of one rank for `hpcai500 doctor`.
struct RankHealth {
    std::string host;
    int node = 0;
    std::string program_sha256;
    std::string mpi;            // name and version of the library
    std::string config_sha256;  // of the effective configuration; empty: unreadable on this rank
    std::string device;
    std::string device_uuid;      // empty: a CPU
    int cores = 1;                // of the machine
    int allowed_cores = 1;        // usable by the rank
    int ranks_sharing_cores = 1;  // on its node, including this rank
    int numa_nodes = 1;
    int allowed_numa_nodes = 1;
    std::string output_rejection;  // why a run would reject the result directory; empty: accepted
    std::string output_error;      // why the rank cannot write to it; empty if it can
    bool sees_output = true;       // whether the rank sees a file that rank 0 wrote there
    double free_bytes = 0;         // on the file system of the result directory
    std::string golden_sha256;     // of the parameters after the steps of --golden; empty: off
};

/// The result of one check of a launch.
struct Finding {
    std::string check;  // "program", "binding", ...
    std::string text;
    std::string remedy;  // what to do, or the command line to use; may be empty
    bool is_wrong = false;
    ExitCode code = ExitCode::ok;  // exit code of `doctor`; ok: no problem or a warning
};

/// The command of this launch, for remedies.
struct LaunchCommand {
    std::string run;  // command line of `hpcai500 run`, without the launcher
    bool by_srun = false;
};

/// Returns a line break and a warning for the log of rank 0 if that rank may use fewer cores than
/// its share of the node, for example because of mpirun's default binding; else an empty string.
std::string describe_restricted_binding(const device::Cores& cores,
                                        const context::PlaceOnNode& place);

/// Checks that all ranks run the same executable and MPI library.
Finding diagnose_program(std::span<const RankHealth> by_world_rank);

/// Warns of settings that break a rule, and of missing keys of `submission`. No warning at
/// run.level custom.
Finding diagnose_rules(const config::Config& config);

/// Checks program, configuration, binding, output and, with --golden, trained parameters. Returns
/// one finding per check.
std::vector<Finding> diagnose_launch(std::span<const RankHealth> by_world_rank,
                                     const LaunchCommand& launch);

/// Returns the findings with their remedies, and a last line such as "DOCTOR ok" or "DOCTOR 2
/// findings, 1 warning". Long lines are broken, control characters are escaped.
std::string findings_text(std::span<const Finding> findings);

}  // namespace hpcai::launch
