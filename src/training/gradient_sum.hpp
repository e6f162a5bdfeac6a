// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include <hpcai/device/device.hpp>

namespace hpcai::training {

/// Adds up gradients that one micro-batch after the other leaves in the same memory, in fp32 and in
/// the order of the calls.
class GradientSum {
public:
    /// Takes as much memory again where there is more than one micro-batch.
    GradientSum(device::Device& device, std::span<float> gradients, int micro_batches);

    /// Enqueued after the backward pass of each micro-batch of a step, from 0 on; after the last
    /// `gradients` hold the sum of all.
    void add(int micro_batch);

private:
    std::unique_ptr<device::Kernel> make_add(float* to, float* other);

    device::Device& device_;
    std::span<float> gradients_;
    int micro_batches_;
    std::unique_ptr<device::Memory> sums_, workspace_;
    std::unique_ptr<device::Kernel> add_to_sums_, add_to_gradients_;
};

}  // namespace hpcai::training
