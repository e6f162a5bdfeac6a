// SPDX-License-Identifier: Apache-2.0
#include "gradient_accumulator.hpp"

#include <algorithm>

namespace hpcai::training {

GradientAccumulator::GradientAccumulator(device::Device& device, std::span<float> gradients,
                                         int micro_batches)
    : device_(device), gradients_(gradients), micro_batches_(micro_batches) {
    if (micro_batches == 1) return;
    sums_ = device.allocate(gradients.size_bytes());
    add_to_sums_ =
        make_add({static_cast<float*>(sums_->data()), gradients.size()}, gradients.data());
}

std::unique_ptr<device::Kernel> GradientAccumulator::make_add(std::span<float> to, float* other) {
    const ops::Add add{tensor::Shape{static_cast<std::int64_t>(to.size())}};
    auto kernel = device_.build(add, {tensor::DType::f32, device::Mode::inference, false});
    workspaces_.push_back(device_.allocate(kernel->memory().workspace_bytes));
    device::KernelTensors tensors;
    tensors.inputs = {to.data(), other};
    tensors.output = to.data();
    tensors.workspace = workspaces_.back()->data();
    kernel->bind(tensors);
    return kernel;
}

void GradientAccumulator::add(int micro_batch) {
    if (micro_batch == 0) {
        device_.enqueue_copy(sums_->data(), gradients_.data(), gradients_.size_bytes());
    } else {
        add_to_sums_->run(ops::Pass::forward);
    }
}

void GradientAccumulator::prepare(const std::vector<comm::Range>& ranges) {
    if (micro_batches_ == 1) return;
    for (const comm::Range& elements : ranges) {
        const std::size_t end = std::min(elements.end, gradients_.size());
        if (elements.begin >= end) continue;
        auto* sums = static_cast<float*>(sums_->data());
        add_to_gradients_[elements.begin] = make_add(
            gradients_.subspan(elements.begin, end - elements.begin), sums + elements.begin);
    }
}

void GradientAccumulator::finish(const comm::Range& elements) {
    if (micro_batches_ == 1 || elements.begin >= gradients_.size()) return;
    add_to_gradients_.at(elements.begin)->run(ops::Pass::forward);
}

}  // namespace hpcai::training
