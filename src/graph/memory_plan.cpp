// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <numeric>

#include <hpcai/base/rounding.hpp>
#include <hpcai/graph/memory_plan.hpp>

namespace hpcai::graph {
namespace {

constexpr std::size_t kOffsetAlignment = 64;

bool live_together(const Lifetime& a, const Lifetime& b) {
    return a.first <= b.last && b.first <= a.last;
}

struct Placed {
    std::size_t index;
    std::size_t begin, end;
};

/// The lowest offset where `bytes` fit between `neighbours`, which are sorted by begin.
std::size_t lowest_gap(const std::vector<Placed>& neighbours, std::size_t bytes) {
    std::size_t offset = 0;
    for (const Placed& other : neighbours) {
        if (offset + bytes <= other.begin) break;
        offset = std::max(offset, other.end);
    }
    return offset;
}

}  // namespace

MemoryPlan plan_memory(const std::vector<Lifetime>& lifetimes) {
    std::vector<std::size_t> order(lifetimes.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
        return lifetimes[a].bytes > lifetimes[b].bytes;
    });
    MemoryPlan plan{std::vector<std::size_t>(lifetimes.size(), 0), 0};
    std::vector<Placed> placed;  // sorted by begin
    for (const std::size_t index : order) {
        const std::size_t bytes = align_up(lifetimes[index].bytes, kOffsetAlignment);
        std::vector<Placed> neighbours;
        std::copy_if(placed.begin(), placed.end(), std::back_inserter(neighbours),
                     [&](const Placed& other) {
                         return live_together(lifetimes[index], lifetimes[other.index]);
                     });
        const std::size_t begin = lowest_gap(neighbours, bytes);
        const Placed entry{index, begin, begin + bytes};
        placed.insert(
            std::upper_bound(placed.begin(), placed.end(), entry,
                             [](const Placed& a, const Placed& b) { return a.begin < b.begin; }),
            entry);
        plan.offsets[index] = begin;
        plan.total_bytes = std::max(plan.total_bytes, entry.end);
    }
    return plan;
}

}  // namespace hpcai::graph
