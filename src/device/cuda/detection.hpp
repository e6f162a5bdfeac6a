// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/anchor_grid.hpp"

#include "context.hpp"

namespace hpcai::device::cuda {

/// An operation of detection that has a forward pass and scratch for it, and no more.
class ForwardKernel : public Kernel {
public:
    KernelMemory memory() const override { return {0, 0, workspace_bytes_}; }
    std::vector<ops::Pass> passes() const override { return {ops::Pass::forward}; }
    void bind(const KernelTensors& tensors) override { tensors_ = tensors; }

protected:
    ForwardKernel(const Context& context, std::size_t workspace_bytes)
        : context_(context), workspace_bytes_(workspace_bytes) {}

    template <typename T = float>
    const T* input(std::size_t index) const {
        return static_cast<const T*>(tensors_.inputs[index]);
    }
    float* output() const { return static_cast<float*>(tensors_.output); }

    const Context& context_;
    std::size_t workspace_bytes_;
    KernelTensors tensors_;
};

/// How many of `samples` may be positive.
inline int positive_limit(std::int64_t samples, double share) {
    return static_cast<int>(static_cast<double>(samples) * share);
}

/// The first of `values` as kernels take them: each level's logits, then each level's deltas.
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
