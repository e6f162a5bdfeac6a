// SPDX-License-Identifier: Apache-2.0
#include "gradient_sum.hpp"

#include <algorithm>

namespace hpcai::training {

GradientSum::GradientSum(device::Device& device, std::span<float> gradients, int micro_batches)
    : device_(device), gradients_(gradients), micro_batches_(micro_batches) {
    if (micro_batches == 1) return;
    sums_ = device.allocate(gradients.size_bytes());
    auto* sums = static_cast<float*>(sums_->data());
    add_to_sums_ = make_add(sums, gradients.data());
    add_to_gradients_ = make_add(gradients.data(), sums);
}

std::unique_ptr<device::Kernel> GradientSum::make_add(float* to, float* other) {
    const ops::Add add{tensor::Shape{static_cast<std::int64_t>(gradients_.size())}};
    auto kernel = device_.build(add, {tensor::DType::f32, device::Mode::inference, false});
    if (workspace_ == nullptr) workspace_ = device_.allocate(kernel->memory().workspace_bytes);
    device::KernelTensors tensors;
    tensors.inputs = {to, other};
    tensors.output = to;
    tensors.workspace = workspace_->data();
    kernel->bind(tensors);
    return kernel;
}

void GradientSum::add(int micro_batch) {
    if (micro_batches_ == 1) return;
    if (micro_batch == 0) {
        device_.enqueue_copy(sums_->data(), gradients_.data(), gradients_.size_bytes());
    } else if (micro_batch + 1 < micro_batches_) {
        add_to_sums_->run(ops::Pass::forward);
    } else {
        add_to_gradients_->run(ops::Pass::forward);
    }
}

}  // namespace hpcai::training
