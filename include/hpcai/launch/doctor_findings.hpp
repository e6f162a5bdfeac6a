// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <vector>

#include <hpcai/base/error.hpp>

namespace hpcai::launch {

/// The facts that one rank gives to `hpcai500 doctor`.
struct RankHealth {
    std::string host;
    int node = 0;
    std::string program;  // SHA-256 of the binary
    std::string mpi;      // name and version of the library
    std::string config;   // SHA-256 of the effective configuration; empty: it sees no such file
    std::string device;
    std::string device_uuid;  // empty: a CPU
    int cores = 1;            // of the machine
    int allowed_cores = 1;    // that it may run on
    int sharing = 1;          // ranks of its node that may run on the same cores
    int numa_nodes = 1;
    int allowed_numa_nodes = 1;
    std::string output_refusal;  // why a run would not take the directory; empty: it would
    std::string output_trouble;  // why it cannot write where results go; empty: it can
    bool sees_output = true;     // what rank 0 has written there
    double free_bytes = 0;       // there
    std::string golden;          // SHA-256 of what its steps came to; empty: it took none
};

/// One check of a launch.
struct Finding {
    std::string check;   // "program", "binding", ...
    std::string text;    // what there is, or what is wrong
    std::string remedy;  // what to do, a command line where there is one; empty: nothing
    bool is_wrong = false;
    ExitCode code = ExitCode::ok;  // of what would stop a run; ok and wrong: a warning
};

/// The command of this launch, for remedies.
struct Launch {
    std::string run;  // command line of the run that this is for, without launcher
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
