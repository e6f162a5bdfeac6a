// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include <hpcai/graph/network.hpp>
#include <hpcai/training/step_log.hpp>

namespace hpcai::training {

/// Reports the kernels of a traced step to the log's trace and calls `after_kernel(call)` after
/// each kernel.
template <typename AfterKernel>
class KernelObserver final : public graph::Observer {
public:
    KernelObserver(StepLog* log, AfterKernel after_kernel)
        : trace_(log == nullptr ? nullptr : log->kernels()),
          after_kernel_(std::move(after_kernel)) {}

    void before(const graph::KernelCall& call) override {
        if (trace_ != nullptr) trace_->before(call);
    }
    void after(const graph::KernelCall& call) override {
        if (trace_ != nullptr) trace_->after(call);
        after_kernel_(call);
    }

private:
    graph::Observer* trace_;
    AfterKernel after_kernel_;
};

}  // namespace hpcai::training
