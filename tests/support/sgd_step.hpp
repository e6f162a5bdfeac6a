// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>

#include <hpcai/device/device.hpp>

namespace hpcai::device {

/// Steps of SGD on buffers in device memory with numbers of their own.
class SgdSteps {
public:
    /// Of all elements where `sgd` names no ranges. `tensors.numbers` is not read.
    SgdSteps(Device& device, Sgd sgd, SgdTensors tensors)
        : device_(device), numbers_(device.allocate(sizeof(StepNumbers))) {
        if (sgd.ranges.empty()) sgd.ranges.push_back({0, tensors.parameters.size(), true});
        tensors.numbers = static_cast<const StepNumbers*>(numbers_->data());
        update_ = device.build(sgd, tensors);
    }

    void step(double learning_rate) {
        const StepNumbers numbers{.learning_rate = static_cast<float>(learning_rate)};
        device_.upload(numbers_->data(), std::as_bytes(std::span(&numbers, 1)));
        update_->run();
    }

private:
    Device& device_;
    std::unique_ptr<Memory> numbers_;
    std::unique_ptr<Update> update_;
};

}  // namespace hpcai::device
