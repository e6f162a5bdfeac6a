// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace hpcai::slurm {

enum class Scheduler { slurm, pbs, flux };
enum class Launcher { mpirun, srun };

/// One task of a job array.
struct ArrayTask {
    std::vector<std::string> settings;  // arguments of --set: "bagging.M=2"
    int ranks = 1;                      // ranks of the job, or M x P_degree if that is less
};

/// The options of `hpcai500 sbatch`, with the defaults that depend on the configuration filled in.
struct BatchJob {
    Scheduler scheduler = Scheduler::slurm;
    std::string command_line;  // the command that generates the script
    std::string name;
    std::vector<std::string> configs;   // arguments of --config: files
    std::vector<std::string> settings;  // arguments of --set: "section.key=value"
    int nodes = 1;
    int ranks_per_node = 1;
    int gpus_per_node = 0;  // 0: none
    int cpus_per_rank = 0;  // 0: whole nodes
    std::string time;  // limit in a format of time_limit_seconds(); empty: the partition's limit
    std::int64_t time_seconds = 0;         // the same limit; 0: the partition's limit
    Launcher launcher = Launcher::mpirun;  // srun requires Slurm; Flux uses its own
    std::vector<ArrayTask> array;          // empty: one job
    int requeues = 0;                 // maximum number of restarts after a stop at a checkpoint
    std::string results = "results";  // parent of the result directories
    std::map<std::string, std::string> site_options;  // such as {"account", "physics"}
    std::vector<std::string> modules;                 // loaded before the launch
    std::string prologue;            // file that the script sources after the modules; empty: none
    std::string container;           // Apptainer image in which the program runs; empty: none
    std::vector<std::string> binds;  // paths mounted in the container besides the working directory
};

/// A job of batch_script() begins to stop this many seconds before its time limit.
inline constexpr int kSignalLeadSeconds = 120;

/// Returns `name` of the job with '-' in place of every character that a scheduler might interpret.
std::string job_name(const BatchJob& job);

/// Returns the lines that the scheduler reads, such as "#SBATCH --nodes=4"; for PBS, also a `cd`.
/// Throws Error(usage) for an option that the scheduler does not have, a missing option that it
/// requires, or a value with characters that a scheduler or shell might interpret.
std::string directives(const BatchJob& job);

}  // namespace hpcai::slurm
