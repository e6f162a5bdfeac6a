// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <span>

#include <hpcai/base/error.hpp>
#include <hpcai/base/text.hpp>
#include <hpcai/comm/launch.hpp>

namespace hpcai::comm {
namespace {

// SLURM_NTASKS is last, because `mpirun -np 1` in an allocation of many tasks starts one rank. The
// PMI_ variables are those of Hydra (MPICH, Intel MPI), `srun --mpi=pmi2` and Flux.
constexpr std::array kSizeVariables{"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "FLUX_JOB_SIZE",
                                    "SLURM_NTASKS"};
constexpr std::array kRankVariables{"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK",
                                    "FLUX_TASK_RANK"};
// A launcher other than srun sets one of these and passes SLURM_PROCID on to its ranks.
constexpr std::array kOtherLaunchers{"OMPI_COMM_WORLD_SIZE", "MPI_LOCALNRANKS", "FLUX_TASK_RANK"};

std::optional<int> positive_integer(const char* text) {
    const std::optional<int> value = parse_number<int>(text == nullptr ? "" : text);
    return value && *value >= 1 ? value : std::nullopt;
}

bool has_any(const EnvironmentLookup& environment, std::span<const char* const> names) {
    return std::ranges::any_of(names,
                               [&](const char* name) { return environment(name) != nullptr; });
}

/// Whether each node has one task: Slurm writes "1", or "1(x4)" for four nodes.
bool is_one_task_per_node(const char* tasks_per_node) {
    const std::string_view tasks(tasks_per_node == nullptr ? "" : tasks_per_node);
    return tasks == "1" || (tasks.starts_with("1(x") && tasks.find(',') == std::string_view::npos);
}

}  // namespace

void check_launch(std::optional<int> world_size, const EnvironmentLookup& environment,
                  const std::string& command_line) {
    if (!world_size && has_any(environment, kRankVariables)) return;
    if (world_size.value_or(1) > 1) return;
    for (const char* name : kSizeVariables) {
        const std::optional<int> expected = positive_integer(environment(name));
        if (!expected) continue;
        require(
            *expected == 1, ExitCode::launch,
            "launch: this process is the only rank of its MPI world although {}={}, so each copy "
            "would run separately. Start them together with\n"
            "  mpirun -np {} {}\nor, under Slurm,\n  srun --mpi=pmix -n {} {}\n"
            "To run one rank on purpose: mpirun -np 1 {}",
            name, *expected, *expected, command_line, *expected, command_line, command_line);
        return;
    }
}

int launched_ranks(const EnvironmentLookup& environment) {
    for (const char* name : kSizeVariables) {
        const std::optional<int> ranks = positive_integer(environment(name));
        if (ranks) return *ranks;
    }
    return 1;
}

bool started_by_srun(const EnvironmentLookup& environment) {
    return environment("SLURM_PROCID") != nullptr && !has_any(environment, kOtherLaunchers);
}

bool is_other_than_first_rank(const EnvironmentLookup& environment) {
    const auto* name = std::ranges::find_if(
        kRankVariables, [&](const char* variable) { return environment(variable) != nullptr; });
    const char* rank = environment(name == kRankVariables.end() ? "SLURM_PROCID" : *name);
    return rank != nullptr && std::string_view(rank) != "0";
}

bool exit_ends_other_ranks(const EnvironmentLookup& environment) {
    const auto is = [&](const char* name, std::string_view expected) {
        const char* value = environment(name);
        return value != nullptr && value == expected;
    };
    if (is("OMPI_MCA_orte_enable_recovery", "1")) return false;
    const bool survives_exit = started_by_srun(environment) && is("SLURM_KILL_BAD_EXIT", "0");
    return !(survives_exit && is_one_task_per_node(environment("SLURM_STEP_TASKS_PER_NODE")));
}

}  // namespace hpcai::comm
