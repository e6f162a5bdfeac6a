// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include <hpcai/comm/range.hpp>
#include <hpcai/device/device.hpp>

namespace hpcai::training {

/// Accumulates the gradients of micro-batches in fp32 and in the order of the calls. The backward
/// pass of each micro-batch overwrites the gradients of the previous micro-batch.
class GradientAccumulator {
public:
    /// Allocates a second buffer of the size of `gradients` if there are several micro-batches.
    GradientAccumulator(device::Device& device, std::span<float> gradients, int micro_batches)
        : device_(device), gradients_(gradients), micro_batches_(micro_batches) {
        if (micro_batches == 1) return;
        sums_ = device.allocate(gradients.size_bytes());
        add_to_sums_ =
            make_add({static_cast<float*>(sums_->data()), gradients.size()}, gradients.data());
    }

    /// Enqueues the addition of a micro-batch's gradients. Call it after the backward pass of each
    /// micro-batch (from 0) except the last micro-batch.
    void add(int micro_batch) {
        if (micro_batch == 0) {
            device_.enqueue_copy(sums_->data(), gradients_.data(), gradients_.size_bytes());
        } else {
            add_to_sums_->run(ops::Pass::forward);
        }
    }

    /// Call it before the first step with the ranges of all calls of finish(). They must not
    /// overlap.
    void prepare(const std::vector<comm::Range>& ranges) {
        if (micro_batches_ == 1) return;
        for (const comm::Range& elements : ranges) {
            const std::size_t end = std::min(elements.end, gradients_.size());
            if (elements.begin >= end) continue;
            auto* sums = static_cast<float*>(sums_->data());
            add_to_gradients_[elements.begin] = make_add(
                gradients_.subspan(elements.begin, end - elements.begin), sums + elements.begin);
        }
    }

    /// Enqueues the last addition for these elements of `gradients`, which then hold the sum of all
    /// micro-batches. Call it after the last micro-batch has computed them. Elements beyond the end
    /// of `gradients` (the status) do not change.
    void finish(const comm::Range& elements) {
        if (micro_batches_ == 1 || elements.begin >= gradients_.size()) return;
        add_to_gradients_.at(elements.begin)->run(ops::Pass::forward);
    }

private:
    std::unique_ptr<device::Kernel> make_add(std::span<float> sums, float* terms) {
        const ops::Add add{tensor::Shape{static_cast<std::int64_t>(sums.size())}};
        auto kernel = device_.build(add, {tensor::DType::f32, device::Mode::inference, false});
        workspaces_.push_back(device_.allocate(kernel->memory().workspace_bytes));
        device::KernelTensors tensors;
        tensors.inputs = {sums.data(), terms};
        tensors.output = sums.data();
        tensors.workspace = workspaces_.back()->data();
        kernel->bind(tensors);
        return kernel;
    }

    device::Device& device_;
    std::span<float> gradients_;
    int micro_batches_;
    std::unique_ptr<device::Memory> sums_;
    std::vector<std::unique_ptr<device::Memory>> workspaces_;
    std::unique_ptr<device::Kernel> add_to_sums_;
    std::map<std::size_t, std::unique_ptr<device::Kernel>> add_to_gradients_;  // by first element
};

}  // namespace hpcai::training
