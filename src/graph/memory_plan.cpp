// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <numeric>

#include <hpcai/base/rounding.hpp>
#include <hpcai/graph/memory_plan.hpp>

namespace hpcai::graph {
namespace {

constexpr std::size_t kOffsetAlignment = 64;

bool lifetimes_overlap(const Lifetime& a, const Lifetime& b) {
    return a.first <= b.last && b.first <= a.last;
}

struct Block {
    std::size_t index;
    std::size_t begin, end;
};

/// Returns the lowest offset with `bytes` free bytes between blocks sorted by begin.
std::size_t lowest_free_offset(const std::vector<Block>& live, std::size_t bytes) {
    std::size_t offset = 0;
    for (const Block& other : live) {
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
    std::vector<Block> blocks;  // sorted by begin
    for (const std::size_t index : order) {
        const std::size_t bytes = align_up(lifetimes[index].bytes, kOffsetAlignment);
        std::vector<Block> live;
        std::copy_if(blocks.begin(), blocks.end(), std::back_inserter(live),
                     [&](const Block& other) {
                         return lifetimes_overlap(lifetimes[index], lifetimes[other.index]);
                     });
        const std::size_t begin = lowest_free_offset(live, bytes);
        const Block entry{index, begin, begin + bytes};
        blocks.insert(
            std::upper_bound(blocks.begin(), blocks.end(), entry,
                             [](const Block& a, const Block& b) { return a.begin < b.begin; }),
            entry);
        plan.offsets[index] = begin;
        plan.total_bytes = std::max(plan.total_bytes, entry.end);
    }
    return plan;
}

}  // namespace hpcai::graph
