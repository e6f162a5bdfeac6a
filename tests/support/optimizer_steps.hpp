// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>
#include <utility>

#include <hpcai/device/device.hpp>

namespace hpcai::device {

/// Steps of an optimizer on buffers in device memory, with separate scalars.
class OptimizerSteps {
public:
    /// Updates all elements if `optimizer` has no ranges. `tensors.scalars` is not read.
    OptimizerSteps(Device& device, Optimizer optimizer, OptimizerTensors tensors)
        : device_(device), scalars_(device.allocate(sizeof(StepScalars))) {
        if (optimizer.ranges.empty()) {
            optimizer.ranges.push_back({0, tensors.parameters.size(), true, true});
        }
        tensors.scalars = static_cast<const StepScalars*>(scalars_->data());
        update_ = device.build(optimizer, tensors);
    }

    void step(double learning_rate) {
        const StepScalars scalars{.learning_rate = static_cast<float>(learning_rate),
                                  .taken_steps = taken_steps_++};
        device_.upload(scalars_->data(), std::as_bytes(std::span(&scalars, 1)));
        update_->run();
    }

private:
    Device& device_;
    std::uint32_t taken_steps_ = 0;
    std::unique_ptr<Memory> scalars_;
    std::unique_ptr<Update> update_;
};

}  // namespace hpcai::device
