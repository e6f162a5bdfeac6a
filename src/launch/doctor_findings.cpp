// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <hpcai/base/text.hpp>
#include <hpcai/base/units.hpp>
#include <hpcai/launch/doctor_findings.hpp>

namespace hpcai::launch {
namespace {

using LaunchRanks = std::span<const RankHealth>;

std::string rank_on_host(LaunchRanks ranks, std::size_t rank) {
    return fmt::format("rank {} on {}", rank, ranks[rank].host);
}

/// Returns the ranks whose text is not the most frequent one; all ranks if there is none.
std::vector<std::size_t> minority(LaunchRanks ranks, std::string RankHealth::*text) {
    std::map<std::string, std::size_t> votes;
    for (const RankHealth& rank : ranks) ++votes[rank.*text];
    const auto most =
        std::ranges::max_element(votes, {}, [](const auto& vote) { return vote.second; });
    const bool is_clear = std::ranges::count_if(votes, [&](const auto& vote) {
                              return vote.second == most->second;
                          }) == 1;
    std::vector<std::size_t> found;
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
        if (votes.size() > 1 && (!is_clear || ranks[rank].*text != most->first)) {
            found.push_back(rank);
        }
    }
    return found;
}

/// Returns "rank 3 on host1", "ranks 2, 3 on host1, host2".
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

Finding good(const char* check, std::string text) {
    return {check, std::move(text), "", false, ExitCode::ok};
}

Finding bad(const char* check, std::string text, std::string remedy, ExitCode code) {
    return {check, std::move(text), std::move(remedy), true, code};
}

Finding configuration(LaunchRanks ranks) {
    std::vector<std::size_t> others;
    for (std::size_t rank = 1; rank < ranks.size(); ++rank) {
        const std::string& mine = ranks[rank].config;  // empty: rank 0 sends it in a run
        if (!mine.empty() && mine != ranks[0].config) others.push_back(rank);
    }
    if (others.empty()) {
        return good("config", fmt::format("SHA-256 {}...", ranks[0].config.substr(0, 12)));
    }
    return bad("config",
               "the configuration differs from that of rank 0: " + names_of(ranks, others),
               "give the path of one file on a shared file system", ExitCode::launch);
}

std::string unbound(std::size_t ranks, const Launch& launch) {
    return launch.by_srun
               ? fmt::format("srun --mpi=pmix --ntasks={} --cpu-bind=none {}", ranks, launch.run)
               : fmt::format("mpirun -np {} --bind-to none {}", ranks, launch.run);
}

/// Returns the command that binds ranks to NUMA nodes, as a script of `hpcai500 sbatch` does.
std::string bound_to_numa(std::size_t ranks, int of_a_node, int numa_nodes, const Launch& launch) {
    if (!launch.by_srun) {
        return fmt::format("mpirun -np {} --map-by ppr:{}:numa --bind-to numa {}", ranks,
                           of_a_node / numa_nodes, launch.run);
    }
    std::string nodes;
    for (int rank = 0; rank < of_a_node; ++rank) {
        nodes += (rank > 0 ? "," : "") + std::to_string(rank * numa_nodes / of_a_node);
    }
    return fmt::format("srun --mpi=pmix --ntasks={} --ntasks-per-node={} --cpu-bind=map_ldom:{} {}",
                       ranks, of_a_node, nodes, launch.run);
}

Finding binding(LaunchRanks ranks, const Launch& launch) {
    std::map<int, int> on_node;
    for (const RankHealth& rank : ranks) ++on_node[rank.node];
    std::vector<std::size_t> few;
    std::vector<std::size_t> crowded;
    std::vector<std::size_t> wide;
    for (std::size_t i = 0; i < ranks.size(); ++i) {
        const RankHealth& rank = ranks[i];
        const int neighbours = on_node[rank.node];
        if (rank.sharing > rank.allowed_cores) crowded.push_back(i);
        if (rank.allowed_cores / rank.sharing < rank.cores / neighbours) few.push_back(i);
        if (rank.allowed_numa_nodes > 1 && neighbours % rank.numa_nodes == 0) wide.push_back(i);
    }
    if (!few.empty()) {
        const RankHealth& first = ranks[few.front()];
        return bad(
            "binding",
            fmt::format("{} may use {} of {} for {}", names_of(ranks, few), first.allowed_cores,
                        counted(first.cores, "core"), counted(first.sharing, "rank")),
            unbound(ranks.size(), launch), ExitCode::ok);
    }
    if (!crowded.empty()) {
        const RankHealth& first = ranks[crowded.front()];
        return bad(
            "binding",
            fmt::format("{}: {} share {}", names_of(ranks, crowded), counted(first.sharing, "rank"),
                        counted(first.allowed_cores, "core")),
            "start fewer ranks on a node", ExitCode::ok);
    }
    if (!wide.empty()) {
        const RankHealth& first = ranks[wide.front()];
        return bad("binding",
                   fmt::format("cores of {} NUMA nodes: {}", first.allowed_numa_nodes,
                               names_of(ranks, wide)),
                   bound_to_numa(ranks.size(), on_node[first.node], first.numa_nodes, launch),
                   ExitCode::ok);
    }
    return good("binding", fmt::format("rank 0 may use {} of {}, {} of {}", ranks[0].allowed_cores,
                                       counted(ranks[0].cores, "core"), ranks[0].allowed_numa_nodes,
                                       counted(ranks[0].numa_nodes, "NUMA node")));
}

Finding output(LaunchRanks ranks) {
    constexpr double kMinBytes = 1e9;
    constexpr const char* kShared = "choose a folder on a shared file system with --output";
    if (!ranks[0].output_refusal.empty()) {
        return bad("output", ranks[0].output_refusal, "choose a new directory with --output",
                   ExitCode::usage);
    }
    std::vector<std::size_t> blind;
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
        if (!ranks[rank].output_trouble.empty()) {
            return bad("output", rank_on_host(ranks, rank) + ": " + ranks[rank].output_trouble,
                       kShared, ExitCode::usage);
        }
        if (!ranks[rank].sees_output) blind.push_back(rank);
    }
    if (!blind.empty()) {
        return bad("output",
                   "a file that rank 0 has written is not visible to " + names_of(ranks, blind),
                   kShared, ExitCode::usage);
    }
    const auto least = static_cast<std::size_t>(
        std::ranges::min_element(ranks, {}, &RankHealth::free_bytes) - ranks.begin());
    const std::string space =
        format_bytes(static_cast<std::uint64_t>(ranks[least].free_bytes)) + " free";
    if (ranks[least].free_bytes < kMinBytes) {
        return bad("output", fmt::format("{}: {}", rank_on_host(ranks, least), space),
                   "free some space, or choose another folder with --output", ExitCode::ok);
    }
    return good("output", "all ranks can write, " + space);
}

/// Compares the results of the golden steps. Devices of different kinds may round differently.
Finding golden(LaunchRanks ranks) {
    const auto others = minority(ranks, &RankHealth::golden);
    if (others.empty()) {
        return good("golden",
                    fmt::format("all ranks have the result {}...", ranks[0].golden.substr(0, 12)));
    }
    const bool is_attributed = others.size() < ranks.size();
    std::string text = is_attributed ? "the result differs from that of the other ranks: "
                                     : "no result has a majority of the ranks: ";
    text += names_of(ranks, others);
    if (!minority(ranks, &RankHealth::device).empty()) {
        text += fmt::format("; their devices differ, too ({}, {})", ranks[0].device,
                            ranks[others.back()].device);
    }
    return bad("golden", std::move(text),
               is_attributed ? "exclude that host and start again"
                             : "start on more hosts of one kind, or on each alone",
               ExitCode::mismatch);
}

}  // namespace

Finding examine_program(std::span<const RankHealth> ranks) {
    if (const auto others = minority(ranks, &RankHealth::program); !others.empty()) {
        return bad("program",
                   "the program differs from that of the other ranks: " + names_of(ranks, others),
                   "start the same file on all nodes, such as one on a shared file system",
                   ExitCode::launch);
    }
    if (const auto others = minority(ranks, &RankHealth::mpi); !others.empty()) {
        return bad("program",
                   fmt::format("the MPI library differs from that of the other ranks, {}: {}",
                               ranks[others.front()].mpi, names_of(ranks, others)),
                   "load the same modules on all nodes", ExitCode::launch);
    }
    return good("program",
                fmt::format("SHA-256 {}..., {}", ranks[0].program.substr(0, 12), ranks[0].mpi));
}

std::vector<Finding> examine(std::span<const RankHealth> by_world_rank, const Launch& launch) {
    std::vector<Finding> findings{examine_program(by_world_rank), configuration(by_world_rank),
                                  binding(by_world_rank, launch), output(by_world_rank)};
    if (!by_world_rank.front().golden.empty()) findings.push_back(golden(by_world_rank));
    return findings;
}

std::string findings_text(std::span<const Finding> findings) {
    std::string text;
    std::int64_t stops = 0;
    std::int64_t warnings = 0;
    for (const Finding& finding : findings) {
        const bool is_warning = finding.is_wrong && finding.code == ExitCode::ok;
        warnings += is_warning;
        stops += finding.is_wrong && !is_warning;
        const char* word = is_warning ? "warning" : finding.is_wrong ? "WRONG" : "ok";
        text += fmt::format("{:<9} {:<7} {}\n", finding.check, word, printable(finding.text));
        if (!finding.remedy.empty()) text += "  remedy: " + printable(finding.remedy) + "\n";
    }
    return text + fmt::format("DOCTOR {}{}\n", stops == 0 ? "ok" : counted(stops, "finding"),
                              warnings == 0 ? "" : ", " + counted(warnings, "warning"));
}

}  // namespace hpcai::launch
