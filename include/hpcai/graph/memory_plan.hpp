// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

namespace hpcai::graph {

/// A tensor that must exist from the kernel call with index `first` to that with index `last`.
struct Lifetime {
    std::size_t bytes = 0;
    int first = 0;
    int last = 0;
};

struct MemoryPlan {
    std::vector<std::size_t> offsets;  // [lifetime] in bytes, 64-byte aligned
    std::size_t total_bytes = 0;
};

/// Assigns offsets in one block such that tensors with overlapping lifetimes do not share memory.
/// In descending size, each tensor gets the lowest offset that is free during its lifetime.
MemoryPlan plan_memory(const std::vector<Lifetime>& lifetimes);

}  // namespace hpcai::graph
