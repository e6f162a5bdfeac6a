// SPDX-License-Identifier: Apache-2.0
#include <ctime>

#include <gtest/gtest.h>

#include "device/kernel_runner.hpp"
#include "device/random_problems.hpp"

/// Guarantees of the CPU engine other than the results of kernels.
namespace hpcai::device {
namespace {

/// Returns the smallest CPU time of a training step of a stem.
double stem_seconds(const DeviceRow& row, std::int64_t channels) {
    const ops::Convolution op{
        .input = {2, 32, 32, channels}, .filters = 64, .kernel = 7, .stride = 2, .padding = 3};
    naive::Problem problem{.operation = op};
    problem.inputs = {naive::Tensor(op.input)};
    problem.parameters = {naive::Tensor({64, 7, 7, channels})};
    problem.output_gradients = {naive::Tensor(output_shape(op))};
    KernelRunner runner(row, problem);
    double least = 1e9;
    for (int repeat = 0; repeat < 3; ++repeat) {
        const std::clock_t start = std::clock();
        runner.run();
        least = std::min(least, static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC);
    }
    return least;
}

TEST(CpuConvolution, IsFastForAnyNumberOfImageChannels) {
    // In blocked layouts, oneDNN has only reference loops for some of these, which take a thousand
    // times longer.
    for (const auto& [one_thread, two_threads] : cpu_thread_pairs()) {
        const double most = 30 * stem_seconds(one_thread, 16);
        for (const std::int64_t channels : {3, 4, 5, 13}) {
            EXPECT_LT(stem_seconds(one_thread, channels), most) << channels << " channels";
        }
    }
}

TEST(CpuBatchNorm, IsTheSameBitForBitForAnyNumberOfThreads) {
    for (const auto& [one, two] : cpu_thread_pairs()) {
        const auto problem = random_batch_norm(
            one.compute,
            {.input = {5, 7, 7, 48}, .statistics_samples = 1, .add = true, .relu = true}, 2, 0.5);
        const auto a = KernelRunner(one, problem).run(), b = KernelRunner(two, problem).run();
        EXPECT_EQ(a.output.values, b.output.values);
        EXPECT_EQ(a.running_variance.values, b.running_variance.values);
        for (std::size_t i = 0; i < 2; ++i) {
            EXPECT_EQ(a.input_gradients[i].values, b.input_gradients[i].values);
            EXPECT_EQ(a.parameter_gradients[i].values, b.parameter_gradients[i].values);
        }
    }
}

TEST(CpuPooling, GlobalAverageIsTheSameBitForBitForAnyNumberOfThreads) {
    for (const auto& [one, two] : cpu_thread_pairs()) {
        const auto problem = random_images(one.compute, ops::GlobalAveragePool{{3, 7, 7, 40}});
        const auto a = KernelRunner(one, problem).run(), b = KernelRunner(two, problem).run();
        EXPECT_EQ(a.output.values, b.output.values);
        EXPECT_EQ(a.input_gradients[0].values, b.input_gradients[0].values);
    }
}

}  // namespace
}  // namespace hpcai::device
