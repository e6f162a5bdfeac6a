// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/anchor_grid.hpp"

#include "context.hpp"

namespace hpcai::device::cuda {

/// Returns the outputs of a region proposal network as kernel arguments. `values` has the logits of
/// all levels, then the deltas of all levels.
inline kernels::RpnOutputs rpn_outputs(const kernels::AnchorGrid& grid, DType dtype,
                                       const std::vector<void*>& values) {
    kernels::RpnOutputs rpn{
        .dtype = dtype,
        .logit_stride = static_cast<int>(stored_channels(grid.per_cell)),
        .delta_stride = static_cast<int>(stored_channels(std::int64_t{4} * grid.per_cell))};
    const auto levels = static_cast<std::size_t>(grid.levels);
    for (std::size_t level = 0; level < levels; ++level) {
        rpn.logits[level] = values[level];
        rpn.deltas[level] = values[levels + level];
    }
    return rpn;
}

}  // namespace hpcai::device::cuda
