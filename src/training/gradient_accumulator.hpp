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

/// Adds up gradients that one micro-batch after the other leaves in the same memory, in fp32 and in
/// the order of the calls.
class GradientAccumulator {
public:
    /// Takes as much memory again where there is more than one micro-batch.
    GradientAccumulator(device::Device& device, std::span<float> gradients, int micro_batches);

    /// Enqueued after the backward pass of each micro-batch of a step but the last, from 0 on.
    void add(int micro_batch);

    /// Before the first step: each range of elements that finish() will be called with. They do not
    /// overlap.
    void prepare(const std::vector<comm::Range>& ranges);

    /// Enqueued after the last has made these elements: then `gradients` hold the sum of all
    /// micro-batches there. Elements after `gradients` stay.
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
