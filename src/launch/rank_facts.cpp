// SPDX-License-Identifier: Apache-2.0
#include "rank_facts.hpp"

#include <algorithm>
#include <array>
#include <set>
#include <string>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <hpcai/base/error.hpp>
#include <hpcai/comm/collectives.hpp>
#include <hpcai/launch/doctor_findings.hpp>
#include <hpcai/launch/environment.hpp>

namespace hpcai::launch {

std::vector<context::RankFacts> gather_rank_facts(const device::Device& device,
                                                  comm::Communicator& everyone) {
    const device::Determinism mine = device.determinism();
    const auto devices = comm::all_gather_strings(everyone, device.description());
    const auto uuids = comm::all_gather_strings(everyone, device.uuid());
    const auto conditions = comm::all_gather_strings(everyone, mine.conditions);
    const auto numbers = comm::all_gather(
        everyone,
        std::array{device.threads(), int{mine.is_repeatable}, int{mine.is_thread_invariant}});
    std::vector<context::RankFacts> facts;
    for (std::size_t rank = 0; rank < numbers.size(); ++rank) {
        const auto& [threads, is_repeatable, is_thread_invariant] = numbers[rank];
        const device::Determinism determinism{is_repeatable != 0, is_thread_invariant != 0,
                                              conditions[rank]};
        facts.push_back({threads, devices[rank], uuids[rank], determinism});
    }
    return facts;
}

DeterminismRecord describe_determinism(bool requested, std::span<const context::RankFacts> ranks,
                                       int degree) {
    if (!requested) return {false, "none: not requested by run.deterministic", ""};
    const bool is_repeatable = std::ranges::all_of(
        ranks, [](const context::RankFacts& rank) { return rank.determinism.is_repeatable; });
    const bool is_thread_invariant = std::ranges::all_of(
        ranks, [](const context::RankFacts& rank) { return rank.determinism.is_thread_invariant; });
    if (!is_repeatable) return {true, "none: a rank's device does not guarantee it", ""};

    std::set<std::string> conditions;
    for (const context::RankFacts& rank : ranks) conditions.insert(rank.determinism.conditions);
    DeterminismRecord record;
    record.requested = true;
    record.guarantee = fmt::format(
        "a group's model and predictions have the same bits in every run under the conditions; "
        "{}bagging.M and the threads that read data may differ",
        is_thread_invariant ? "device.threads, " : "");
    record.conditions = fmt::format(
        "{}; the same program, libraries, data, seed, placement of a group's ranks on nodes, "
        "precision "
        "in force, and configuration except for what may differ (docs/METRICS.md, Equal digests){}",
        fmt::join(conditions, " and "),
        degree > 1 ? "; an MPI whose order of sums does not depend on timing, such as Open MPI"
                   : "");
    return record;
}

std::string check_programs(comm::StartUp& start_up) {
    const std::string mine = binary_digest();
    const auto programs = comm::all_gather_strings(start_up.everyone(), mine);
    const auto libraries =
        comm::all_gather_strings(start_up.everyone(), comm::MpiWorld::library_version());
    std::vector<RankHealth> ranks(programs.size());
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
        ranks[rank].host = start_up.host(rank);
        ranks[rank].program_sha256 = programs[rank];
        ranks[rank].mpi = libraries[rank];
    }
    const Finding finding = diagnose_program(ranks);
    require(!finding.is_wrong, finding.code, "{}; {}", finding.text, finding.remedy);
    return mine;
}

}  // namespace hpcai::launch
