// SPDX-License-Identifier: Apache-2.0
// Kernels that are planned for an H200 without one, and how plans are compared. Nothing runs.
#include <cmath>
#include <cstring>
#include <limits>

#include <gtest/gtest.h>

#include "cuda/planned.hpp"
#include "device/cuda/cudnn_choice.hpp"
#include "device/cuda/plan_cache.hpp"

namespace hpcai::device::cuda {
namespace {

const ops::Convolution kStem{{4, 32, 32, 3}, 64, 7, 2, 3};
const ops::Convolution kInner{{4, 8, 8, 64}, 128, 3, 1, 1};

std::size_t prepared_bytes(const ops::Convolution& op, const KernelOptions& options) {
    const Context context = described_h200();
    return build(op, options, context)->memory().prepared_bytes;
}

TEST(PlannedConvolution, KeepsFiltersInTheComputeTypeWithTheChannelsThatAreStored) {
    EXPECT_EQ(prepared_bytes(kStem, {.compute = DType::f16}), 64U * 7 * 7 * 4 * 2);
    EXPECT_EQ(prepared_bytes(kStem, {.compute = DType::f32}), 64U * 7 * 7 * 4 * 4);
    EXPECT_EQ(prepared_bytes(kInner, {.compute = DType::bf16}), 128U * 3 * 3 * 64 * 2);
}

TEST(PlannedConvolution, ReadsTheMastersWhereTheyAreWhatCudnnTakes) {
    EXPECT_EQ(prepared_bytes(kInner, {.compute = DType::f32}), 0U);
}

TEST(PlannedConvolution, HasRoomForTheGradientThatCudnnWrites) {
    const Context context = described_h200();
    const auto half = build(kInner, {.compute = DType::f16}, context);
    EXPECT_GE(half->memory().workspace_bytes, 128U * 3 * 3 * 64 * 2);
}

TEST(PlannedConvolution, WorksInThePassesThatAreNeeded) {
    const Context context = described_h200();
    using ops::Pass;
    EXPECT_EQ(
        build(kInner, {}, context)->passes(),
        (std::vector{Pass::prepare, Pass::forward, Pass::weight_gradient, Pass::input_gradient}));
    EXPECT_EQ(build(kStem, {.needs_input_gradient = false}, context)->passes(),
              (std::vector{Pass::prepare, Pass::forward, Pass::weight_gradient}));
    EXPECT_EQ(build(kInner, {.mode = Mode::inference}, context)->passes(),
              (std::vector{Pass::prepare, Pass::forward}));
}

TEST(PlannedConvolution, CanBePlannedForChannelsThatFillNoVector) {
    const Context context = described_h200();
    for (const DType compute : {DType::f16, DType::bf16, DType::f32}) {
        for (const std::int64_t channels : {1, 2, 3, 5, 13}) {
            for (const std::int64_t filters : {2, 3, 5, 10}) {
                const ops::Convolution op{{2, 9, 8, channels}, filters, 3, 1, 1};
                EXPECT_NO_THROW(build(op, {.compute = compute}, context));
            }
        }
    }
}

TEST(PlannedLinear, KeepsWeightsInTheComputeTypeAndOnesThatSumTheSamples) {
    const Context context = described_h200();
    const ops::Linear op{{64, 2048}, 1000};
    EXPECT_EQ(build(op, {.compute = DType::f16}, context)->memory().prepared_bytes,
              2048U * 1000 * 2 + 256);
    EXPECT_EQ(build(op, {.compute = DType::f32}, context)->memory().prepared_bytes, 256U);
    const KernelOptions inference{.compute = DType::f32, .mode = Mode::inference};
    EXPECT_EQ(build(op, inference, context)->memory().prepared_bytes, 0U);
}

TEST(PlannedLinear, HasRoomForTheFp32ResultBeforeItsRelu) {
    const Context context = described_h200();
    const KernelOptions half{.compute = DType::f16};
    const auto workspace = [&](bool relu) {
        return build(ops::Linear{{64, 2048}, 1000, relu}, half, context)->memory().workspace_bytes;
    };
    EXPECT_EQ(workspace(true), workspace(false) + 64U * 1000 * 4);
}

TEST(ChosenPlan, IsTheOneThatIsKnown) {
    Context context = described_h200();
    const ConvolutionShape shape{.images = 64,
                                 .height = 14,
                                 .width = 14,
                                 .channels = 256,
                                 .filters = 256,
                                 .kernel = 3,
                                 .stride = 1,
                                 .padding = 1,
                                 .dtype = DType::f16};
    ConvolutionPlans plans(shape, ConvolutionPass::forward, context, ConvolutionPlans::Search::all);
    int last = plans.count() - 1;
    while (last > 0 && !plans.finalize(last)) --last;
    ASSERT_GT(last, 0);
    PlanCache cache("", {});
    cache.insert(plan_key(shape, ConvolutionPass::forward), plans.name(last));
    context.plans = &cache;
    EXPECT_EQ(ChosenPlan(shape, ConvolutionPass::forward, context).name(), plans.name(last));
    cache.insert(plan_key(shape, ConvolutionPass::forward), "of another version");
    EXPECT_EQ(ChosenPlan(shape, ConvolutionPass::forward, context).name(), plans.name(0));
}

template <typename T>
std::span<const std::byte> bytes_of_values(const std::vector<T>& values) {
    return std::as_bytes(std::span(values));
}

TEST(RelativeDifference, IsTheNormOfTheDifferenceOverTheNorm) {
    const std::vector<float> a{3, 4, 1}, b{3, 4, 0};
    EXPECT_DOUBLE_EQ(relative_difference(DType::f32, bytes_of_values(a), bytes_of_values(b)), 0.2);
    EXPECT_EQ(relative_difference(DType::f32, bytes_of_values(a), bytes_of_values(a)), 0);
}

TEST(RelativeDifference, ReadsHalfTypes) {
    // 1, -2, 65504, 2^-24 in fp16, and the halves of all but the last.
    const std::vector<std::uint16_t> a{0x3c00, 0xc000, 0x7bff, 0x0001};
    const std::vector<std::uint16_t> b{0x3800, 0xbc00, 0x77ff, 0x0001};
    EXPECT_NEAR(relative_difference(DType::f16, bytes_of_values(a), bytes_of_values(b)), 1, 1e-6);
    const std::vector<std::uint16_t> c{0x3f80, 0xc000}, d{0x3f00, 0xbf80};  // bf16
    EXPECT_NEAR(relative_difference(DType::bf16, bytes_of_values(c), bytes_of_values(d)), 1, 1e-6);
}

TEST(RelativeDifference, OfWhatIsNoNumberIsInfinite) {
    const std::vector<float> a{1, std::nanf("")}, b{1, 2};
    EXPECT_TRUE(
        std::isinf(relative_difference(DType::f32, bytes_of_values(a), bytes_of_values(b))));
    EXPECT_TRUE(
        std::isinf(relative_difference(DType::f32, bytes_of_values(b), bytes_of_values(a))));
    const std::vector<std::uint16_t> c{0x7c00}, d{0x3c00};  // infinite in fp16
    EXPECT_TRUE(
        std::isinf(relative_difference(DType::f16, bytes_of_values(c), bytes_of_values(d))));
    const std::vector<float> zero{0}, one{1};
    EXPECT_TRUE(
        std::isinf(relative_difference(DType::f32, bytes_of_values(one), bytes_of_values(zero))));
}

}  // namespace
}  // namespace hpcai::device::cuda
