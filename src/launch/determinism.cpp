// SPDX-License-Identifier: Apache-2.0
#include "determinism.hpp"

#include <algorithm>
#include <set>
#include <string>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace hpcai::launch {

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

}  // namespace hpcai::launch
