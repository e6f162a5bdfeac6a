// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include <hpcai/graph/network.hpp>
#include <hpcai/training/step_log.hpp>

namespace hpcai::training {

/// Reports the kernels of a traced step to the log's trace and calls `after_kernel(step)` after
/// each kernel.
template <typename AfterKernel>
class StepObserver final : public graph::Observer {
public:
    StepObserver(StepLog* log, AfterKernel after_kernel)
        : trace_(log == nullptr ? nullptr : log->kernels()),
          after_kernel_(std::move(after_kernel)) {}

    void before(const graph::Step& step) override {
        if (trace_ != nullptr) trace_->before(step);
    }
    void after(const graph::Step& step) override {
        if (trace_ != nullptr) trace_->after(step);
        after_kernel_(step);
    }

private:
    graph::Observer* trace_;
    AfterKernel after_kernel_;
};

}  // namespace hpcai::training
