// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <hpcai/base/text.hpp>
#include <hpcai/base/units.hpp>
#include <hpcai/launch/doctor_findings.hpp>
#include <hpcai/verification/verdict.hpp>

namespace hpcai::launch {
namespace {

using LaunchRanks = std::span<const RankHealth>;

std::string rank_on_host(LaunchRanks ranks, std::size_t rank) {
    return fmt::format("rank {} on {}", rank, ranks[rank].host);
}

/// Returns the ranks whose `text` is not the most frequent one; in a tie for it, all ranks.
std::vector<std::size_t> minority(LaunchRanks ranks, std::string RankHealth::*text) {
    std::map<std::string, std::size_t> counts;
    for (const RankHealth& rank : ranks) ++counts[rank.*text];
    const auto most_frequent =
        std::ranges::max_element(counts, {}, [](const auto& row) { return row.second; });
    const bool is_unique = std::ranges::count_if(counts, [&](const auto& row) {
                               return row.second == most_frequent->second;
                           }) == 1;
    std::vector<std::size_t> found;
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
        if (counts.size() > 1 && (!is_unique || ranks[rank].*text != most_frequent->first))
            found.push_back(rank);
    }
    return found;
}

/// Returns "rank 3 on host1" or "ranks 2, 3 on host1, host2".
std::string names_of(LaunchRanks ranks, const std::vector<std::size_t>& chosen) {
    if (chosen.size() == 1) return rank_on_host(ranks, chosen.front());
    constexpr std::size_t kMaxNamed = 8;
    std::string numbers;
    std::set<std::string> hosts;
    for (std::size_t i = 0; i < chosen.size(); ++i) {
        hosts.insert(ranks[chosen[i]].host);
        if (i < kMaxNamed) numbers += (i > 0 ? ", " : "") + std::to_string(chosen[i]);
    }
    if (chosen.size() > kMaxNamed)
        numbers += fmt::format(" and {} more", chosen.size() - kMaxNamed);
    return fmt::format("ranks {} on {}", numbers, fmt::join(hosts, ", "));
}

Finding pass(const char* check, std::string text) {
    return {check, std::move(text), ""};
}

Finding fail(const char* check, std::string text, std::string remedy, ExitCode code) {
    return {check, std::move(text), std::move(remedy), true, code};
}

Finding check_configuration(LaunchRanks ranks) {
    std::vector<std::size_t> others;
    for (std::size_t rank = 1; rank < ranks.size(); ++rank) {
        const std::string& digest = ranks[rank].config_sha256;  // empty: a run reads it on rank 0
        if (!digest.empty() && digest != ranks[0].config_sha256) others.push_back(rank);
    }
    if (others.empty()) {
        return pass("config", fmt::format("SHA-256 {}...", ranks[0].config_sha256.substr(0, 12)));
    }
    return fail("config",
                "the configuration differs from that of rank 0: " + names_of(ranks, others),
                "pass a configuration file on a shared file system", ExitCode::launch);
}

std::string unbound_command(std::size_t ranks, const LaunchCommand& launch) {
    return launch.by_srun
               ? fmt::format("srun --mpi=pmix --ntasks={} --cpu-bind=none {}", ranks, launch.run)
               : fmt::format("mpirun -np {} --bind-to none {}", ranks, launch.run);
}

/// Returns the command that binds ranks to NUMA nodes, as the scripts of `hpcai500 sbatch` do.
std::string numa_bound_command(std::size_t ranks, int ranks_per_node, int numa_nodes,
                               const LaunchCommand& launch) {
    if (!launch.by_srun) {
        return fmt::format("mpirun -np {} --map-by ppr:{}:numa --bind-to numa {}", ranks,
                           ranks_per_node / numa_nodes, launch.run);
    }
    std::string nodes;
    for (int rank = 0; rank < ranks_per_node; ++rank)
        nodes += (rank > 0 ? "," : "") + std::to_string(rank * numa_nodes / ranks_per_node);
    return fmt::format("srun --mpi=pmix --ntasks={} --ntasks-per-node={} --cpu-bind=map_ldom:{} {}",
                       ranks, ranks_per_node, nodes, launch.run);
}

/// Returns whether a rank may use fewer cores than its share of the node.
bool is_restricted(const device::Cores& cores, int ranks_sharing_cores, int ranks_on_node) {
    return cores.allowed / ranks_sharing_cores < cores.machine / ranks_on_node;
}

Finding check_binding(LaunchRanks ranks, const LaunchCommand& launch) {
    std::map<int, int> ranks_on_node;
    for (const RankHealth& rank : ranks) ++ranks_on_node[rank.node];
    std::vector<std::size_t> restricted, oversubscribed, multi_numa;
    for (std::size_t i = 0; i < ranks.size(); ++i) {
        const RankHealth& rank = ranks[i];
        const int on_node = ranks_on_node[rank.node], sharing = rank.ranks_sharing_cores;
        if (sharing > rank.allowed_cores) oversubscribed.push_back(i);
        if (is_restricted({rank.cores, rank.allowed_cores}, sharing, on_node))
            restricted.push_back(i);
        if (rank.allowed_numa_nodes > 1 && on_node % rank.numa_nodes == 0) multi_numa.push_back(i);
    }
    if (!restricted.empty()) {
        const RankHealth& first = ranks[restricted.front()];
        return fail("binding",
                    fmt::format("{} may use {} of {}, shared by {}", names_of(ranks, restricted),
                                first.allowed_cores, counted(first.cores, "core"),
                                counted(first.ranks_sharing_cores, "rank")),
                    unbound_command(ranks.size(), launch), ExitCode::ok);
    }
    if (!oversubscribed.empty()) {
        const RankHealth& first = ranks[oversubscribed.front()];
        return fail("binding",
                    fmt::format("{}: {} share {}", names_of(ranks, oversubscribed),
                                counted(first.ranks_sharing_cores, "rank"),
                                counted(first.allowed_cores, "core")),
                    "start fewer ranks on a node", ExitCode::ok);
    }
    if (!multi_numa.empty()) {
        const RankHealth& first = ranks[multi_numa.front()];
        return fail(
            "binding",
            fmt::format("{} may use cores of {} NUMA nodes", names_of(ranks, multi_numa),
                        first.allowed_numa_nodes),
            numa_bound_command(ranks.size(), ranks_on_node[first.node], first.numa_nodes, launch),
            ExitCode::ok);
    }
    return pass("binding", fmt::format("rank 0 may use {} of {}, {} of {}", ranks[0].allowed_cores,
                                       counted(ranks[0].cores, "core"), ranks[0].allowed_numa_nodes,
                                       counted(ranks[0].numa_nodes, "NUMA node")));
}

Finding check_output(LaunchRanks ranks) {
    constexpr double kMinBytes = 1e9;
    constexpr const char* kShared = "choose a folder on a shared file system with --output";
    if (!ranks[0].output_rejection.empty()) {
        return fail("output", ranks[0].output_rejection, "choose a new directory with --output",
                    ExitCode::usage);
    }
    std::vector<std::size_t> not_visible_to;
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
        if (!ranks[rank].output_error.empty()) {
            return fail("output", rank_on_host(ranks, rank) + ": " + ranks[rank].output_error,
                        kShared, ExitCode::usage);
        }
        if (!ranks[rank].sees_output) not_visible_to.push_back(rank);
    }
    if (!not_visible_to.empty()) {
        return fail(
            "output",
            "a file that rank 0 has written is not visible to " + names_of(ranks, not_visible_to),
            kShared, ExitCode::usage);
    }
    const auto fullest = static_cast<std::size_t>(
        std::ranges::min_element(ranks, {}, &RankHealth::free_bytes) - ranks.begin());
    const std::string space =
        format_bytes(static_cast<std::uint64_t>(ranks[fullest].free_bytes)) + " free";
    if (ranks[fullest].free_bytes < kMinBytes) {
        return fail("output", fmt::format("{}: {}", rank_on_host(ranks, fullest), space),
                    "free some space, or choose another folder with --output", ExitCode::ok);
    }
    return pass("output", "all ranks can write, " + space);
}

/// Compares the parameters of the ranks after the steps of --golden, in which each rank trains
/// alone. Devices of different kinds may round differently.
Finding check_golden_steps(LaunchRanks ranks) {
    const auto others = minority(ranks, &RankHealth::golden_sha256);
    if (others.empty()) {
        return pass("golden", fmt::format("all ranks have the result {}...",
                                          ranks[0].golden_sha256.substr(0, 12)));
    }
    const bool has_majority = others.size() < ranks.size();
    std::string text = has_majority ? "the result differs from that of the other ranks: "
                                    : "no result has a majority of the ranks: ";
    text += names_of(ranks, others);
    if (!minority(ranks, &RankHealth::device).empty()) {
        text += fmt::format("; the devices of the ranks differ, too ({}, {})", ranks[0].device,
                            ranks[others.back()].device);
    }
    return fail("golden", std::move(text),
                has_majority ? "exclude each named host and start again"
                             : "start on more hosts of one kind, or on each host separately",
                ExitCode::mismatch);
}

}  // namespace

std::string describe_restricted_binding(const device::Cores& cores,
                                        const context::PlaceOnNode& place) {
    if (!is_restricted(cores, place.ranks_sharing_cores, place.ranks_on_node)) return "";
    return "\n" + wrap(fmt::format("warning: rank 0 may use {} of {}, shared by {}; start with "
                                   "`mpirun --bind-to none` or `srun --cpu-bind=none`",
                                   cores.allowed, counted(cores.machine, "core"),
                                   counted(place.ranks_sharing_cores, "rank")),
                       4);
}

Finding diagnose_program(std::span<const RankHealth> ranks) {
    if (const auto others = minority(ranks, &RankHealth::program_sha256); !others.empty()) {
        return fail("program",
                    "the program differs from that of the other ranks: " + names_of(ranks, others),
                    "start the same executable on all nodes, such as one on a shared file system",
                    ExitCode::launch);
    }
    if (const auto others = minority(ranks, &RankHealth::mpi); !others.empty()) {
        return fail("program",
                    fmt::format("the MPI library, {}, differs from that of the other ranks: {}",
                                ranks[others.front()].mpi, names_of(ranks, others)),
                    "load the same modules on all nodes", ExitCode::launch);
    }
    return pass("program", fmt::format("SHA-256 {}..., {}", ranks[0].program_sha256.substr(0, 12),
                                       ranks[0].mpi));
}

Finding diagnose_rules(const config::Config& config) {
    std::vector<std::string> problems = verification::rules_broken_by_settings(config);
    const std::string incomplete = verification::describe_missing_for_rank(config);
    if (!incomplete.empty()) problems.push_back(incomplete);
    if (!problems.empty()) return {"rules", fmt::format("{}", fmt::join(problems, "; ")), "", true};
    const bool is_custom = config.run.level == config::Level::custom;
    return pass("rules",
                is_custom ? "run.level is custom: not rankable" : "all settings keep the rules");
}

std::vector<Finding> diagnose_launch(std::span<const RankHealth> by_world_rank,
                                     const LaunchCommand& launch) {
    std::vector<Finding> findings{
        diagnose_program(by_world_rank), check_configuration(by_world_rank),
        check_binding(by_world_rank, launch), check_output(by_world_rank)};
    if (!by_world_rank.front().golden_sha256.empty())
        findings.push_back(check_golden_steps(by_world_rank));
    return findings;
}

std::string findings_text(std::span<const Finding> findings) {
    std::string text;
    std::int64_t problems = 0, warnings = 0;
    for (const Finding& finding : findings) {
        const bool is_warning = finding.is_wrong && finding.code == ExitCode::ok;
        warnings += is_warning;
        problems += finding.is_wrong && !is_warning;
        const char* word = is_warning ? "warning" : finding.is_wrong ? "WRONG" : "ok";
        text +=
            wrap(fmt::format("{:<9} {:<7} {}", finding.check, word, printable(finding.text)), 18);
        text += "\n";
        if (finding.remedy.empty()) continue;
        const std::string remedy = "  remedy: " + printable(finding.remedy);
        const bool is_command = finding.remedy.find("hpcai500 run") != std::string::npos;
        text += (is_command ? wrap_command(remedy, 6) : wrap(remedy, 10)) + "\n";
    }
    return text + fmt::format("DOCTOR {}{}\n", problems == 0 ? "ok" : counted(problems, "finding"),
                              warnings == 0 ? "" : ", " + counted(warnings, "warning"));
}

}  // namespace hpcai::launch
