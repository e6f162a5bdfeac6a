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
    int ranks = 1;                      // M x P_degree if both are set, else all of the job
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
    std::string time;       // limit, for time_limit_seconds(); empty: the partition's
    Launcher launcher = Launcher::mpirun;
    std::vector<ArrayTask> array;     // empty: one job
    int requeues = 0;                 // maximum number of restarts after stops at checkpoints
    std::string results = "results";  // folder of the result directories
};

/// Returns the seconds of a time as `sbatch --time` accepts it: "minutes", "minutes:seconds",
/// "hours:minutes:seconds", "days-hours", "days-hours:minutes", "days-hours:minutes:seconds".
/// Returns nothing for another string or more than 10 years.
std::optional<std::int64_t> time_limit_seconds(std::string_view text);

/// A job of batch_script() gets a signal from Slurm this many seconds before its time limit.
inline constexpr int kSignalLeadSeconds = 120;

/// Returns the script for `sbatch`. A restarted job finds its result directory by job number and
/// resumes the run in it. The exit code is that of `hpcai500 status`, or when this launch fails
/// without results, the launcher's code, or 1 if that is 0. Throws Error(usage) that names a string
/// with control characters.
std::string batch_script(const BatchJob& job);

}  // namespace hpcai::slurm
