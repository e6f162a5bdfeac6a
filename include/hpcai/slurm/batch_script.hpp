// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// Slurm's words: text alone, no Slurm needed.
namespace hpcai::slurm {

enum class Launcher { mpirun, srun };

/// One task of a job array.
struct ArrayTask {
    std::vector<std::string> settings;  // "bagging.M=2", behind --set
    int ranks = 1;                      // of the allocation's, M x P_degree
};

/// A job that runs the benchmark.
struct BatchJob {
    std::string command_line;  // that makes this script
    std::string name;
    std::string config;                 // file
    std::vector<std::string> settings;  // "section.key=value", behind --set
    int nodes = 1;
    int ranks_per_node = 1;
    int gpus_per_node = 0;  // 0: asks for none
    int cpus_per_rank = 0;  // 0: whole nodes
    std::string time;       // is_time_limit; empty: what the partition has
    Launcher launcher = Launcher::mpirun;
    std::vector<ArrayTask> array;     // empty: one job
    int requeues = 0;                 // at most so often after a stop at a checkpoint
    std::string results = "results";  // folder of the result directories
};

/// Seconds of a time as `sbatch --time` takes it: "minutes", "minutes:seconds",
/// "hours:minutes:seconds", "days-hours", "days-hours:minutes", "days-hours:minutes:seconds".
/// Nothing for another text and above 10 years.
std::optional<std::int64_t> time_limit_seconds(std::string_view text);

/// How long before the end of its time Slurm tells a job of batch_script().
inline constexpr int kNoticeSeconds = 120;

/// The text for `sbatch`. A restarted job finds its result directory by its number, resumes what
/// is there, and exits as `hpcai500 status` does. Throws Error(usage) naming a text that holds a
/// line break or another control character, which could make a line of its own.
std::string batch_script(const BatchJob& job);

}  // namespace hpcai::slurm
