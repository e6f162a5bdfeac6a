// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <hpcai/base/error.hpp>
#include <hpcai/device/device.hpp>
#include <hpcai/reference/problem_runner.hpp>

#include "device/device_rows.hpp"

namespace hpcai::device {

/// Runs one kernel of a row's device on a problem. A test fails if the kernel writes past the end
/// of a tensor.
class KernelRunner {
public:
    KernelRunner(const DeviceRow& row, const naive::Problem& problem,
                 SyncBatchNormReducer* sync_batch_norm_reducer = nullptr)
        : problem_(problem),
          device_(row.make()),
          options_{.kernel = {.compute = row.compute,
                              .tf32 = row.tf32,
                              .int8 = row.int8,
                              .rounding = row.rounding,
                              .sync_batch_norm_reducer = sync_batch_norm_reducer},
                   .step = row.step} {}

    /// Runs all passes in order and returns all results. Unwanted input gradients have a null
    /// address.
    naive::Solution run(const std::vector<bool>& wanted_input_gradients = {}) {
        options_.wanted_input_gradients = wanted_input_gradients;
        naive::ProblemRunner runner(*device_, options_, problem_);
        runner.run();
        EXPECT_FALSE(runner.wrote_past_end());
        return runner.read();
    }

private:
    const naive::Problem& problem_;
    std::unique_ptr<Device> device_;
    naive::ProblemRunner::Options options_;
};

inline void expect_close(const naive::Tensor& got, const naive::Tensor& want, double tolerance,
                         const std::string& what) {
    ASSERT_EQ(got.values.size(), want.values.size()) << what;
    double largest = 1e-30;
    for (const double value : want.values) largest = std::max(largest, std::abs(value));
    for (std::size_t i = 0; i < want.values.size(); ++i) {
        ASSERT_NEAR(got.values[i], want.values[i], tolerance * largest) << what << " at " << i;
    }
}

inline void expect_agreement(const DeviceRow& row, const naive::Problem& problem,
                             const Tolerance& tolerance) {
    SCOPED_TRACE(std::string(name_of(problem.operation)) + " of " +
                 to_string(problem.inputs[0].shape));
    const naive::Solution got = KernelRunner(row, problem).run();
    const naive::Solution want = naive::solve(problem);
    const bool fp32 = output_dtype(problem.operation) == tensor::DType::f32;
    expect_close(got.output, want.output, fp32 ? tolerance.fp32 : tolerance.stored, "output");
    expect_close(got.sums, want.sums, tolerance.stored, "sums");
    expect_close(got.losses, want.losses, tolerance.fp32, "losses");
    expect_close(got.running_mean, want.running_mean, tolerance.fp32, "running mean");
    expect_close(got.running_variance, want.running_variance, tolerance.fp32, "running variance");
    expect_close(got.inner_running_mean, want.inner_running_mean, tolerance.fp32,
                 "inner running mean");
    expect_close(got.inner_running_variance, want.inner_running_variance, tolerance.fp32,
                 "inner running variance");
    if (!problem.training) return;
    for (std::size_t i = 0; i < want.input_gradients.size(); ++i) {
        expect_close(got.input_gradients[i], want.input_gradients[i], tolerance.stored,
                     "input gradient " + std::to_string(i));
    }
    const bool filters = std::holds_alternative<ops::Convolution>(problem.operation);
    for (std::size_t i = 0; i < want.parameter_gradients.size(); ++i) {
        expect_close(got.parameter_gradients[i], want.parameter_gradients[i],
                     filters ? tolerance.filters : tolerance.fp32,
                     "parameter gradient " + std::to_string(i));
    }
}

inline void expect_agreement(const DeviceRow& row, const naive::Problem& problem) {
    expect_agreement(row, problem, row.tolerance);
}

}  // namespace hpcai::device
