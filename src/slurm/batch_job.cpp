// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <map>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include <hpcai/base/error.hpp>
#include <hpcai/base/text.hpp>
#include <hpcai/slurm/batch_job.hpp>

namespace hpcai::slurm {
namespace {

constexpr std::string_view kNameLetters =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";

const char* scheduler_name(const BatchJob& job) {
    constexpr std::array kSchedulers{"slurm", "pbs", "flux"};  // [Scheduler]
    return kSchedulers[static_cast<std::size_t>(job.scheduler)];
}

void require_supported(const BatchJob& job, bool is_supported, std::string_view option) {
    require(is_supported, ExitCode::usage, "sbatch: --{}: not supported with --scheduler {}",
            option, scheduler_name(job));
}

/// Returns the option as the scheduler expects it. In PBS, ':' begins a resource of each node.
std::string form_of(const BatchJob& job, const std::string& name, const std::string& value) {
    static const std::map<std::string, std::array<const char*, 3>> kForms{
        // [option][Scheduler]
        {"account", {"--account=", "-A ", "--setattr=bank="}},
        {"partition", {"--partition=", "-q ", "--queue="}},
        {"qos", {"--qos=", nullptr, nullptr}},
        {"constraint", {"--constraint=", ":", "--requires="}},
        {"mem", {"--mem=", ":mem=", nullptr}}};
    const std::string legal = std::string(kNameLetters) + ",:@%+=&|()*!/[]";
    require(!value.empty() && value.find_first_not_of(legal) == value.npos, ExitCode::usage,
            "sbatch: --{}: expected letters, digits and .,:@%+=&|()*!/[]-_ alone, got '{}'", name,
            printable(value));
    const char* form = kForms.at(name)[static_cast<std::size_t>(job.scheduler)];
    require_supported(job, form != nullptr, name);
    return form + value;
}

std::string slurm_directives(const BatchJob& job) {
    std::string text =
        fmt::format("#SBATCH --job-name={}\n#SBATCH --nodes={}\n", job_name(job), job.nodes);
    text += fmt::format("#SBATCH --ntasks-per-node={}\n", job.ranks_per_node);
    if (job.gpus_per_node > 0) {
        text += fmt::format(
            "#SBATCH --gpus-per-node={}\n"
            "# Each rank sees all GPUs of its node so that it can access its peers' memory.\n"
            "#SBATCH --gpu-bind=none\n",
            job.gpus_per_node);
    }
    if (job.cpus_per_rank > 0) {
        text += fmt::format("#SBATCH --cpus-per-task={}\n", job.cpus_per_rank);
    } else {
        text += "# A benchmark needs whole nodes.\n#SBATCH --exclusive\n";
    }
    for (const auto& [name, value] : job.site_options)
        text += "#SBATCH " + form_of(job, name, value) + "\n";
    if (!job.time.empty()) text += fmt::format("#SBATCH --time={}\n", job.time);
    if (!job.array.empty()) text += fmt::format("#SBATCH --array=0-{}\n", job.array.size() - 1);
    text += fmt::format(
        "# Slurm signals only this script, {0} seconds before the time limit.\n"
        "#SBATCH --signal=B:USR1@{0}\n",
        kSignalLeadSeconds);
    text += job.requeues > 0 ? "#SBATCH --requeue\n" : "#SBATCH --no-requeue\n";
    return text +
           "# A restarted job appends to its log.\n"
           "#SBATCH --open-mode=append\n";
}

/// Requires the options that PBS and Flux need, in one error.
void require_options(const BatchJob& job) {
    std::vector<std::string> missing;
    if (job.scheduler == Scheduler::pbs && job.cpus_per_rank == 0)
        missing.emplace_back("--cpus-per-rank");
    if (job.scheduler != Scheduler::slurm && job.requeues > 0 && job.time_seconds == 0)
        missing.emplace_back("--time (because of --requeue)");
    require(missing.empty(), ExitCode::usage, "sbatch: {}: required with --scheduler {}",
            fmt::join(missing, " and "), scheduler_name(job));
}

std::string pbs_directives(const BatchJob& job) {
    require_supported(job, job.array.size() != 1, "array with one value");
    // The script restarts its job by qsub, which would submit the whole array again.
    require_supported(job, job.array.empty() || job.requeues == 0, "array with --requeue");
    std::string select = fmt::format("#PBS -l select={}:ncpus={}:mpiprocs={}", job.nodes,
                                     job.ranks_per_node * job.cpus_per_rank, job.ranks_per_node);
    if (job.gpus_per_node > 0) select += fmt::format(":ngpus={}", job.gpus_per_node);
    std::string others;
    for (const auto& [name, value] : job.site_options) {
        const std::string form = form_of(job, name, value);
        (form[0] == ':' ? select : others) += form[0] == ':' ? form : "#PBS " + form + "\n";
    }
    std::string text = fmt::format("#PBS -N {}\n{}\n#PBS -l place=scatter:excl\n{}", job_name(job),
                                   select, others);
    if (job.time_seconds > 0) text += fmt::format("#PBS -l walltime={}\n", job.time_seconds);
    if (!job.array.empty()) text += fmt::format("#PBS -J 0-{}\n", job.array.size() - 1);
    text += fmt::format("#PBS -r {}\n#PBS -j oe\n", job.requeues > 0 ? 'y' : 'n');
    return text + "cd \"$PBS_O_WORKDIR\" || exit 2\n";
}

std::string flux_directives(const BatchJob& job) {
    require_supported(job, job.cpus_per_rank == 0, "cpus-per-rank");
    require_supported(job, job.array.empty(), "array");
    std::string text = fmt::format("#flux: --job-name={}\n#flux: --nodes={}\n#flux: --exclusive\n",
                                   job_name(job), job.nodes);
    for (const auto& [name, value] : job.site_options)
        text += "#flux: " + form_of(job, name, value) + "\n";
    if (job.time_seconds > 0) text += fmt::format("#flux: --time-limit={}s\n", job.time_seconds);
    return text;
}

}  // namespace

std::string job_name(const BatchJob& job) {
    std::string name = job.name;
    std::ranges::replace_if(
        name, [](char letter) { return kNameLetters.find(letter) == kNameLetters.npos; }, '-');
    return name;
}

std::string directives(const BatchJob& job) {
    require_supported(job, job.scheduler == Scheduler::slurm || job.launcher != Launcher::srun,
                      "launcher srun");
    require_options(job);
    constexpr std::array kDirectives{slurm_directives, pbs_directives, flux_directives};
    return kDirectives[static_cast<std::size_t>(job.scheduler)](job);
}

}  // namespace hpcai::slurm
