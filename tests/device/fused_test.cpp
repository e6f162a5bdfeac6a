// SPDX-License-Identifier: Apache-2.0
// Fused operations on the devices that accept them.
#include <gtest/gtest.h>

#include <hpcai/base/error.hpp>

#include "device/kernel_runner.hpp"
#include "device/random_problems.hpp"

namespace hpcai::device {
namespace {

class FusedOperations : public testing::TestWithParam<DeviceRow> {
protected:
    /// A device need not build an operation that it does not accept.
    void expect_like_reference(const naive::Problem& problem) {
        const KernelOptions options{GetParam().compute, Mode::training, !problem.is_first_layer,
                                    GetParam().tf32};
        if (!GetParam().make()->accepts(problem.operation, options)) return;
        expect_agreement(GetParam(), problem, fused_tolerance_of(GetParam().tolerance));
    }

    naive::Problem convolution(const ops::Convolution& op) {
        naive::Problem problem{.operation = op};
        problem.inputs = {random_.normal(op.input)};
        problem.parameters = {filters(op)};
        problem.output_gradients = {random_.normal(output_shape(op))};
        return problem;
    }

    naive::Problem dual_norm(const tensor::Shape& shape, int gradients, bool from_sums) {
        const ops::BatchNorm inner{.input = shape, .from_sums = from_sums};
        ops::BatchNorm outer = inner;
        outer.add = outer.relu = true;
        naive::Problem problem = random_batch_norm(GetParam().compute, outer, gradients, 0.5);
        problem.operation = ops::DualNorm{outer, inner};
        naive::Random fp32(tensor::DType::f32, 6);
        problem.parameters.push_back(fp32.normal({shape[3]}, 1, 0.5));
        problem.parameters.push_back(fp32.normal({shape[3]}));
        return problem;
    }

    naive::Problem pointwise_norm(const ops::Convolution& op, int gradients, bool add = true) {
        const ops::BatchNorm norm{.input = output_shape(op), .add = add, .relu = add};
        naive::Problem problem = random_batch_norm(GetParam().compute, norm, gradients, 0.5);
        problem.operation = ops::PointwiseNorm{op, norm};
        problem.inputs[0] = random_.normal(op.input, 1, 0.5);
        // So large that rounding errors of the norm change no sign before the ReLU.
        if (add) {
            for (double& r : problem.inputs[1].values) r = r < 0 ? -6 : 6;
        }
        naive::Random fp32(tensor::DType::f32, 7);
        problem.parameters = {fp32.normal({op.filters}, 0.5, 0.1),
                              fp32.normal({op.filters}, 0, 0.3)};
        problem.parameters.insert(problem.parameters.begin(), filters(op));
        return problem;
    }

    naive::Problem norm_pool(const tensor::Shape& shape, int gradients, bool from_sums) {
        const ops::BatchNorm norm{.input = shape, .relu = true, .from_sums = from_sums};
        naive::Problem problem = random_batch_norm(GetParam().compute, norm, 0, 0.5);
        problem.operation = ops::NormPool{norm, {shape, 3, 2, 1}};
        for (int i = 0; i < gradients; ++i) {
            problem.output_gradients.push_back(random_.normal(output_shape(problem.operation)));
        }
        return problem;
    }

private:
    naive::Tensor filters(const ops::Convolution& op) {
        return random_.normal({op.filters, op.kernel, op.kernel, op.input[3]});
    }
    naive::Random random_{GetParam().compute, 5};
};

const std::vector<ops::Convolution>& convolutions() {
    static const std::vector<ops::Convolution> kAll{
        {{2, 5, 7, 32}, 16, 1},       {{3, 4, 4, 64}, 128, 1},      {{2, 8, 8, 32}, 64, 1, 2},
        {{2, 7, 9, 16}, 32, 3, 1, 1}, {{1, 3, 3, 64}, 64, 3, 1, 1}, {{2, 8, 6, 32}, 16, 3, 2, 1},
        {{2, 7, 9, 16}, 48, 3, 2, 1}, {{5, 12, 12, 8}, 8, 3, 1, 1}};
    return kAll;
}

TEST_P(FusedOperations, ConvolutionsFormTheSumsOfTheirOutput) {
    for (ops::Convolution op : convolutions()) {
        op.sums = true;
        expect_like_reference(convolution(op));
    }
    expect_like_reference(convolution({{2, 17, 16, 3}, 64, 7, 2, 3, true}));
    naive::Problem first = convolution({{2, 16, 14, 3}, 64, 7, 2, 3, true});
    first.is_first_layer = true;
    expect_like_reference(first);
}

TEST_P(FusedOperations, BatchNormsTakeTheirStatisticsFromSums) {
    for (const double mean : {0.0, 3.0}) {
        for (const bool add : {false, true}) {
            const ops::BatchNorm op{
                .input = {3, 5, 4, 16}, .add = add, .relu = true, .from_sums = true};
            expect_like_reference(random_batch_norm(GetParam().compute, op, 2, mean));
        }
    }
    const ops::BatchNorm bare{.input = {3, 5, 4, 64}, .from_sums = true};
    expect_like_reference(random_batch_norm(GetParam().compute, bare, 1, -1));
}

TEST_P(FusedOperations, NormsAreAppliedWhereTheyAreAdded) {
    for (const int gradients : {1, 2}) {
        for (const bool from_sums : {true, false}) {
            expect_like_reference(dual_norm({3, 5, 4, 16}, gradients, from_sums));
            expect_like_reference(dual_norm({2, 7, 7, 64}, gradients, from_sums));
        }
    }
}

TEST_P(FusedOperations, NormsAreAppliedByThePointwiseConvolutionsBeforeThem) {
    for (const int gradients : {1, 2}) {
        expect_like_reference(pointwise_norm({{3, 5, 4, 16}, 128}, gradients));
        expect_like_reference(pointwise_norm({{2, 14, 14, 64}, 256}, gradients));
        expect_like_reference(pointwise_norm({{2, 3, 3, 40}, 128}, gradients));
    }
    expect_like_reference(pointwise_norm({{3, 5, 4, 16}, 128}, 1, false));
    expect_like_reference(pointwise_norm({{2, 14, 14, 64}, 256}, 1, false));
}

TEST_P(FusedOperations, NormsAreAppliedWhereTheyArePooled) {
    for (const int gradients : {1, 2}) {
        for (const bool from_sums : {true, false}) {
            expect_like_reference(norm_pool({3, 5, 4, 16}, gradients, from_sums));
            expect_like_reference(norm_pool({2, 16, 15, 64}, gradients, from_sums));
        }
    }
}

TEST_P(FusedOperations, OperationsAreRejectedWhereTheyWereNotMeantToBe) {
    const auto device = GetParam().make();
    KernelOptions options{GetParam().compute, Mode::training, true, GetParam().tf32};
    const auto accepts = [&](const ops::Operation& op) { return device->accepts(op, options); };
    // The device rejects virtual batches, a norm without sums and other numbers of channels.
    EXPECT_FALSE(accepts(
        ops::BatchNorm{.input = {4, 5, 4, 16}, .statistics_samples = 2, .from_sums = true}));
    EXPECT_FALSE(accepts(ops::BatchNorm{.input = {4, 5, 4, 16}}));
    EXPECT_FALSE(accepts(ops::Convolution{{2, 5, 7, 32}, 16, 1}));
    EXPECT_FALSE(accepts(ops::Convolution{{2, 5, 7, 32}, 13, 1, 1, 0, true}));
    EXPECT_FALSE(accepts(ops::Add{{2, 5, 7, 32}}));
    const ops::BatchNorm norm{.input = {2, 6, 6, 16}, .relu = true};
    EXPECT_FALSE(accepts(ops::NormPool{norm, {norm.input, 2, 2, 0}}));
    EXPECT_FALSE(accepts(ops::NormPool{norm, {norm.input, 3, 2, 0}}));
    EXPECT_FALSE(accepts(ops::NormPool{{.input = {2, 6, 6, 12}}, {{2, 6, 6, 12}, 3, 2, 1}}));
    const naive::Problem fused = dual_norm({2, 7, 7, 64}, 1, true);
    options.mode = Mode::inference;
    EXPECT_THROW(device->build(norm_pool({2, 6, 6, 16}, 1, true).operation, options), Error);
    EXPECT_FALSE(accepts(ops::Convolution{{2, 5, 7, 32}, 16, 1, 1, 0, true}));
    EXPECT_FALSE(accepts(fused.operation));
    EXPECT_THROW(device->build(fused.operation, options), Error);
}

INSTANTIATE_TEST_SUITE_P(Devices, FusedOperations, testing::ValuesIn(device_rows()),
                         [](const auto& test) { return to_string(test.param); });

}  // namespace
}  // namespace hpcai::device
