// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

namespace hpcai::graph {

/// A tensor that must exist from step `first` to step `last`, both included.
struct Lifetime {
    std::size_t bytes = 0;
    int first = 0;
    int last = 0;
};

struct MemoryPlan {
    std::vector<std::size_t> offsets;  // one a lifetime, in bytes, 64-byte aligned
    std::size_t total_bytes = 0;
};

/// Places tensors in one block so that no two alive at the same step overlap: the largest first,
/// each at the lowest place that is free for its whole life.
MemoryPlan plan_memory(const std::vector<Lifetime>& lifetimes);

}  // namespace hpcai::graph
