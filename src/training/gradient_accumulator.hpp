// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include <hpcai/comm/range.hpp>
#include <hpcai/device/device.hpp>

namespace hpcai::training {

/// Accumulates the gradients of micro-batches in fp32 and in the order of the calls. Each
/// micro-batch overwrites the gradients of the previous one.
class GradientAccumulator {
public:
    /// Allocates a second buffer of the size of `gradients` if there are several micro-batches.
    GradientAccumulator(device::Device& device, std::span<float> gradients, int micro_batches);

    /// Enqueues the addition of a micro-batch's gradients. Call it after the backward pass of each
    /// micro-batch (from 0) except the last.
    void add(int micro_batch);

    /// Call it before the first step with all ranges that finish() will be called with. They do not
    /// overlap.
    void prepare(const std::vector<comm::Range>& ranges);

    /// Enqueues the last addition for these elements of `gradients`, which then hold the sum of all
    /// micro-batches. Call it after the last micro-batch has made them. Elements beyond the end of
    /// `gradients` (the status) do not change.
    void finish(const comm::Range& elements);

private:
    std::unique_ptr<device::Kernel> make_add(std::span<float> to, float* other);

    device::Device& device_;
    std::span<float> gradients_;
    int micro_batches_;
    std::unique_ptr<device::Memory> sums_;
    std::vector<std::unique_ptr<device::Memory>> workspaces_;
    std::unique_ptr<device::Kernel> add_to_sums_;
    std::map<std::size_t, std::unique_ptr<device::Kernel>> add_to_gradients_;  // by first element
};

}  // namespace hpcai::training
