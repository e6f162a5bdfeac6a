// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// Batch scripts and time formats of Slurm. Needs no Slurm library.
namespace hpcai::slurm {

enum class Launcher { mpirun, srun };

struct ArrayTask {
    std::vector<std::string> settings;  // arguments of --set: "bagging.M=2"
    int ranks = 1;                      // all ranks of the job, or M x P_degree if that is less
};

struct BatchJob {
    std::string command_line;  // the command that generates the script
    std::string name;
    std::vector<std::string> configs;   // arguments of --config: files
    std::vector<std::string> settings;  // arguments of --set: "section.key=value"
    int nodes = 1;
    int ranks_per_node = 1;
    int gpus_per_node = 0;  // 0: none
    int cpus_per_rank = 0;  // 0: whole nodes
    std::string time;       // as for time_limit_seconds(); empty: the partition's limit
    Launcher launcher = Launcher::mpirun;
    std::vector<ArrayTask> array;         // empty: one job
    int requeues = 0;                     // maximum number of restarts after a stop at a checkpoint
    std::string results = "results";      // parent of the result directories
    std::vector<std::string> directives;  // further options of sbatch: "--account=physics"
    std::vector<std::string> modules;     // loaded before the launch
    std::string prologue;                 // file that the script sources after that; empty: none
};

/// Returns the seconds of a time as `sbatch --time` accepts it: "minutes", "minutes:seconds",
/// "hours:minutes:seconds", "days-hours", "days-hours:minutes", "days-hours:minutes:seconds".
/// Returns nothing for any other string and for more than 10 years.
std::optional<std::int64_t> time_limit_seconds(std::string_view text);

/// Slurm signals a job of batch_script() this many seconds before the job's time limit.
inline constexpr int kSignalLeadSeconds = 120;

/// Returns the script for `sbatch`. A restarted job finds its result directory by job number and
/// resumes the run in it. The script exits with the code of `hpcai500 status`. If the launch wrote
/// nothing, the script exits with the launcher's nonzero code, or with 1 if the status is an
/// earlier stop. Throws Error(usage) for a string with control characters, or a directive with
/// characters that Slurm or a shell might interpret, and names it.
std::string batch_script(const BatchJob& job);

}  // namespace hpcai::slurm
