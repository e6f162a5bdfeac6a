// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include <hpcai/device/device.hpp>

namespace hpcai::speed {

using device::KernelTensors;
using Fault = std::function<void(const KernelTensors&, ops::Pass)>;

/// A kernel that damages its results after each pass.
class FaultyKernel final : public device::Kernel {
public:
    FaultyKernel(device::KernelPtr kernel, Fault fault)
        : kernel_(std::move(kernel)), fault_(std::move(fault)) {}
    device::KernelMemory memory() const override { return kernel_->memory(); }
    ops::BackwardReads backward_reads() const override { return kernel_->backward_reads(); }
    std::vector<ops::Pass> passes() const override { return kernel_->passes(); }
    void bind(const KernelTensors& tensors) override {
        tensors_ = tensors;
        kernel_->bind(tensors);
    }
    void run(ops::Pass pass) override {
        kernel_->run(pass);
        fault_(tensors_, pass);
    }

private:
    device::KernelPtr kernel_;
    Fault fault_;
    KernelTensors tensors_;
};

}  // namespace hpcai::speed
