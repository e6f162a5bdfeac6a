// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/anchor_grid.hpp"

#include "context.hpp"

namespace hpcai::device::cuda {

/// Kernel arguments from `values`, which begins with all levels' logits, then all levels' deltas.
inline kernels::AnchorNumbers anchor_numbers(const kernels::AnchorGrid& grid, DType dtype,
                                             const std::vector<void*>& values) {
    kernels::AnchorNumbers numbers{
        .dtype = dtype,
        .logit_stride = static_cast<int>(stored_channels(grid.per_cell)),
        .delta_stride = static_cast<int>(stored_channels(std::int64_t{4} * grid.per_cell))};
    const auto levels = static_cast<std::size_t>(grid.levels);
    for (std::size_t level = 0; level < levels; ++level) {
        numbers.logits[level] = values[level];
        numbers.deltas[level] = values[levels + level];
    }
    return numbers;
}

}  // namespace hpcai::device::cuda
