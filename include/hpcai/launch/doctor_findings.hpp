// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <vector>

#include <hpcai/base/error.hpp>

namespace hpcai::launch {

/// The facts of one rank for `hpcai500 doctor`.
struct RankHealth {
    std::string host;
    int node = 0;
    std::string program;  // SHA-256 of the binary
    std::string mpi;      // name and version of the library
    std::string config;   // SHA-256 of the effective configuration; empty: unreadable here
    std::string device;
    std::string device_uuid;  // empty: a CPU
    int cores = 1;            // of the machine
    int allowed_cores = 1;    // usable by the rank
    int sharing = 1;          // ranks of its node with the same allowed cores, itself included
    int numa_nodes = 1;
    int allowed_numa_nodes = 1;
    std::string output_refusal;  // why a run would reject the result directory; empty: it would not
    std::string output_trouble;  // why the rank cannot write there; empty if it can
    bool sees_output = true;     // whether it sees a file that rank 0 wrote there
    double free_bytes = 0;       // on the file system of the result directory
    std::string golden;          // SHA-256 of the result of the golden steps; empty if none
};

/// One check of a launch.
struct Finding {
    std::string check;   // "program", "binding", ...
    std::string text;    // the finding
    std::string remedy;  // what to do, a command line if possible; may be empty
    bool is_wrong = false;
    ExitCode code = ExitCode::ok;  // of a run with this problem; ok if is_wrong: only a warning
};

/// The command of this launch, for remedies.
struct Launch {
    std::string run;  // command line of the run, without launcher
    bool by_srun = false;
};

/// Finds whether all ranks run one program with one MPI library.
Finding examine_program(std::span<const RankHealth> by_world_rank);

/// Finds problems of the launch from the facts of its ranks.
std::vector<Finding> examine(std::span<const RankHealth> by_world_rank, const Launch& launch);

/// Returns a line for each finding, "remedy:" lines, and "DOCTOR ok", "DOCTOR ok, 1 warning" or
/// "DOCTOR 2 findings, 1 warning". Control characters are escaped.
std::string findings_text(std::span<const Finding> findings);

}  // namespace hpcai::launch
