// SPDX-License-Identifier: Apache-2.0
#include "rank_facts.hpp"

#include <algorithm>
#include <set>
#include <string>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <hpcai/base/error.hpp>
#include <hpcai/comm/collectives.hpp>
#include <hpcai/launch/doctor_findings.hpp>
#include <hpcai/launch/environment.hpp>

namespace hpcai::launch {
namespace {

struct PackedFacts {
    std::int32_t threads = 0;
    std::int8_t over_repeats = 0;
    std::int8_t over_threads = 0;
    char device[124] = {};
    char conditions[126] = {};
    char device_uuid[64] = {};
};

}  // namespace

std::vector<context::RankFacts> gather_rank_facts(const device::Device& device,
                                                  comm::Communicator& everyone) {
    PackedFacts mine;
    mine.threads = device.threads();
    const std::string text = device.description();
    text.copy(mine.device, sizeof mine.device - 1);
    device.uuid().copy(mine.device_uuid, sizeof mine.device_uuid - 1);
    const device::Determinism determinism = device.determinism();
    mine.over_repeats = determinism.over_repeats;
    mine.over_threads = determinism.over_threads;
    // A truncated condition would promise more than the device does.
    ensure(determinism.conditions.size() < sizeof mine.conditions, "conditions of {} letters",
           determinism.conditions.size());
    determinism.conditions.copy(mine.conditions, sizeof mine.conditions - 1);
    std::vector<context::RankFacts> facts;
    for (const PackedFacts& packed : comm::all_gather(everyone, mine)) {
        facts.push_back({packed.threads,
                         packed.device,
                         packed.device_uuid,
                         {packed.over_repeats != 0, packed.over_threads != 0, packed.conditions}});
    }
    return facts;
}

DeterminismRecord describe_determinism(bool requested, std::span<const context::RankFacts> ranks,
                                       int degree) {
    if (!requested) return {false, "none: not requested by run.deterministic", ""};
    const bool over_repeats = std::ranges::all_of(
        ranks, [](const context::RankFacts& rank) { return rank.determinism.over_repeats; });
    const bool over_threads = std::ranges::all_of(
        ranks, [](const context::RankFacts& rank) { return rank.determinism.over_threads; });
    if (!over_repeats) return {true, "none: not every rank's device promises it", ""};

    std::set<std::string> devices;  // each kind once
    for (const context::RankFacts& rank : ranks) devices.insert(rank.determinism.conditions);
    DeterminismRecord record;
    record.requested = true;
    record.guarantee = fmt::format(
        "a group's model and predictions are the same bits in every run under the conditions; "
        "{}bagging.M and the threads that read data may differ",
        over_threads ? "device.threads, " : "");
    record.conditions = fmt::format(
        "{}; the same program, libraries, data, seed, nodes of a group's ranks, precision in force "
        "and, but for what may differ, configuration (docs/METRICS.md, Equal digests){}",
        fmt::join(devices, " and "),
        degree > 1 ? "; an MPI that sums in an order free of timing, as Open MPI does" : "");
    return record;
}

std::string check_programs(comm::StartUp& start_up) {
    const std::string mine = binary_digest();
    const auto programs = comm::all_gather_strings(start_up.everyone(), mine);
    const auto libraries =
        comm::all_gather_strings(start_up.everyone(), comm::MpiWorld::library_version());
    std::vector<RankHealth> ranks(programs.size());
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
        ranks[rank].host = start_up.hostnames()[rank];
        ranks[rank].program = programs[rank];
        ranks[rank].mpi = libraries[rank];
    }
    const Finding finding = examine_program(ranks);
    require(!finding.is_wrong, finding.code, "{}; {}", finding.text, finding.remedy);
    return mine;
}

}  // namespace hpcai::launch
