// SPDX-License-Identifier: Apache-2.0
#include "kernels/reference/batch_norm.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/buffer.hpp"

namespace hpcai::kernels {
namespace {
using ops::BatchNorm;

// The error of fp32 sums of up to some thousand terms, relative to the larger of the sum and 1.
constexpr double kSumTolerance = 1e-5;
// A span's first pixel may be some deviations away from the mean, whose square then cancels.
constexpr double kStatisticsTolerance = 4e-6;

/// The kernels, or their naive references.
struct Engine {
    decltype(&batch_norm_statistics) statistics;
    decltype(&batch_norm_statistics_from_sums) statistics_of_sums;
    decltype(&batch_norm_running_statistics) running_statistics;
    decltype(&batch_norm_apply) apply;
    decltype(&batch_norm_gradient_sums) gradient_sums;
    decltype(&batch_norm_gradient_apply) gradient_apply;
};
constexpr Engine kKernels{batch_norm_statistics,         batch_norm_statistics_from_sums,
                          batch_norm_running_statistics, batch_norm_apply,
                          batch_norm_gradient_sums,      batch_norm_gradient_apply};
constexpr Engine kTwins{
    reference::batch_norm_statistics,         reference::batch_norm_statistics_from_sums,
    reference::batch_norm_running_statistics, reference::batch_norm_apply,
    reference::batch_norm_gradient_sums,      reference::batch_norm_gradient_apply};

BatchNormShape shape_of(DType dtype, const BatchNorm& op) {
    const std::int64_t span = op.statistics_samples > 0 ? op.statistics_samples : op.input[0];
    return {dtype, op.input[0] / span, span * op.input[1] * op.input[2], op.input[3]};
}

Buffer shifted(Buffer numbers, double mean, double deviation = 1) {
    for (std::int64_t i = 0; i < numbers.count(); ++i) {
        numbers.set(i, mean + deviation * numbers[i]);
    }
    return numbers;
}

/// The inputs of one normalization.
struct Given {
    BatchNorm op;
    BatchNormShape shape;
    Buffer x, r, dy0, dy1, gamma, beta, running_mean, running_variance;
    bool two;

    Given(DType dtype, const BatchNorm& what, bool two_gradients = false, double mean = 0.5)
        : Given(Contents(1), dtype, what, two_gradients, mean) {}

private:
    Given(Contents contents, DType dtype, const BatchNorm& what, bool two_gradients, double mean)
        : op(what),
          shape(shape_of(dtype, what)),
          x(shifted(contents.normal(dtype, what.input.elements()), mean)),
          r(contents.normal(dtype, what.input.elements())),
          dy0(contents.normal(dtype, what.input.elements())),
          dy1(contents.normal(dtype, what.input.elements())),
          gamma(shifted(contents.normal(DType::f32, what.input[3]), 1, 0.5)),
          beta(contents.normal(DType::f32, what.input[3])),
          running_mean(contents.normal(DType::f32, what.input[3])),
          running_variance(shifted(contents.normal(DType::f32, what.input[3]), 4, 0.5)),
          two(two_gradients) {}
};

/// The outputs of one normalization.
struct Written {
    Buffer y, dx, dr, dgamma, dbeta, running_mean, running_variance;
    Buffer mean, inverse_deviation, scale, shift;  // (spans, C)
    Buffer mask, workspace;

    explicit Written(const Given& given)
        : y(given.shape.dtype, given.x.count()),
          dx(y),
          dr(y),
          dgamma(given.gamma.dtype(), given.gamma.count()),
          dbeta(dgamma),
          running_mean(given.running_mean),
          running_variance(given.running_variance),
          mean(DType::f32, given.shape.spans * given.shape.channels),
          inverse_deviation(mean),
          scale(mean),
          shift(mean),
          mask(DType::u8, static_cast<std::int64_t>(batch_norm_mask_bytes(given.shape))),
          workspace(DType::u8, static_cast<std::int64_t>(batch_norm_workspace_bytes(given.shape))) {
    }

    BatchNormStatistics statistics() {
        return {mean.as<float>(), inverse_deviation.as<float>(), scale.as<float>(),
                shift.as<float>()};
    }
    BatchNormParameters parameters(Given& given) {
        return {given.gamma.as<float>(),      given.beta.as<float>(), running_mean.as<float>(),
                running_variance.as<float>(), given.op.epsilon,       given.op.momentum};
    }
    bool fences_stand() const {
        for (const Buffer* buffer :
             {&y, &dx, &dr, &dgamma, &dbeta, &running_mean, &running_variance, &mean,
              &inverse_deviation, &scale, &shift, &mask, &workspace}) {
            if (!buffer->guard_is_intact()) return false;
        }
        return true;
    }
};

void apply(const Engine& engine, Given& given, Written& written) {
    const bool masks = given.op.add && given.op.relu;
    engine.apply(given.shape,
                 {.x = given.x.data(),
                  .scale = written.scale.as<float>(),
                  .shift = written.shift.as<float>(),
                  .residual = given.op.add ? given.r.data() : nullptr,
                  .y = written.y.data(),
                  .mask = masks ? written.mask.as<std::uint32_t>() : nullptr,
                  .relu = given.op.relu},
                 nullptr);
}

BatchNormGradientArguments gradient_arguments(Given& given, Written& written) {
    const bool masks = given.op.add && given.op.relu;
    return {.x = given.x.data(),
            .dy0 = given.dy0.data(),
            .dy1 = given.two ? given.dy1.data() : nullptr,
            .gamma = given.gamma.as<float>(),
            .statistics = written.statistics(),
            .relu = given.op.relu,
            .mask = masks ? written.mask.as<std::uint32_t>() : nullptr,
            .residual_gradient = masks ? written.dr.data() : nullptr,
            .dx = written.dx.data(),
            .gamma_gradient = written.dgamma.as<float>(),
            .beta_gradient = written.dbeta.as<float>(),
            .workspace = written.workspace.data()};
}

/// Runs a training step's forward and backward.
Written run(const Engine& engine, Given& given) {
    Written written(given);
    engine.statistics(
        given.shape,
        {given.x.data(), written.parameters(given), written.statistics(), written.workspace.data()},
        nullptr);
    apply(engine, given, written);
    const BatchNormGradientArguments of = gradient_arguments(given, written);
    engine.gradient_sums(given.shape, of, nullptr);
    engine.gradient_apply(given.shape, of, nullptr);
    return written;
}

naive::Solution solve(const Given& given, bool training = true) {
    const tensor::Shape channels{given.op.input[3]};
    naive::Problem problem{.operation = given.op, .training = training};
    problem.inputs = {given.x.tensor(given.op.input)};
    if (given.op.add) problem.inputs.push_back(given.r.tensor(given.op.input));
    problem.parameters = {given.gamma.tensor(channels), given.beta.tensor(channels)};
    if (training) problem.output_gradients = {given.dy0.tensor(given.op.input)};
    if (given.two) problem.output_gradients.push_back(given.dy1.tensor(given.op.input));
    problem.running_mean = given.running_mean.tensor(channels);
    problem.running_variance = given.running_variance.tensor(channels);
    return naive::solve(problem);
}

void expect_solution(const Given& given, const Written& written) {
    const naive::Solution want = solve(given);
    const double stored = std::max(tolerance_of(given.shape.dtype), kStatisticsTolerance);
    EXPECT_TRUE(near(written.y, want.output, stored)) << "y";
    EXPECT_TRUE(near(written.running_mean, want.running_mean, 1e-6)) << "running mean";
    EXPECT_TRUE(near(written.running_variance, want.running_variance, kStatisticsTolerance))
        << "variance";
    // A sum of two gradients and coefficients, each rounded.
    EXPECT_TRUE(near(written.dx, want.input_gradients[0], 4 * stored)) << "dx";
    if (given.op.add) {
        EXPECT_TRUE(near(written.dr, want.input_gradients[1], 2 * stored)) << "dr";
    }
    const double rounded = given.op.add ? stored : 0;  // the sums use dr as it was stored
    const double n = std::sqrt(static_cast<double>(given.x.count()));
    EXPECT_TRUE(near(written.dgamma, want.parameter_gradients[0], kSumTolerance + rounded * n))
        << "dgamma";
    EXPECT_TRUE(near(written.dbeta, want.parameter_gradients[1], kSumTolerance + rounded * n))
        << "dbeta";
    EXPECT_TRUE(written.fences_stand());
    if (!given.op.add) return;
    for (std::int64_t i = 0; i < given.x.count(); ++i) {
        const bool bit = static_cast<int>(written.mask[i / 8]) >> i % 8 & 1;
        ASSERT_EQ(bit, want.output[i] > 0) << "bit " << i;
    }
}

std::string text_of(const Given& given) {
    return to_string(given.op.input) + (given.op.add ? " add" : "") +
           (given.op.relu ? " relu" : "") + (given.two ? " two" : "");
}

class BatchNormKernel : public ForEachDtype {
protected:
    void expect_like_references(const BatchNorm& op, bool two = false) {
        Given given(GetParam(), op, two);
        SCOPED_TRACE(text_of(given));
        const Written got = run(kKernels, given), twin = run(kTwins, given);
        expect_solution(given, twin);
        expect_solution(given, got);
        EXPECT_TRUE(near(got.mean, twin.mean, kStatisticsTolerance));
        EXPECT_TRUE(near(got.inverse_deviation, twin.inverse_deviation, kStatisticsTolerance));
        EXPECT_TRUE(near(got.scale, twin.scale, kStatisticsTolerance));
        EXPECT_TRUE(near(got.shift, twin.shift, kStatisticsTolerance));
    }
};

TEST_P(BatchNormKernel, AgreesWithReferencesForAnyNumberOfChannels) {
    for (const std::int64_t channels : {1, 3, 5, 8, 12, 24, 41, 64, 320}) {
        expect_like_references({.input = {3, 5, 6, channels}});
    }
    expect_like_references({.input = {2, 2, 2, 2048}});
}

TEST_P(BatchNormKernel, AgreesWithReferencesForManyAndForSinglePixels) {
    expect_like_references({.input = {2, 67, 61, 8}, .relu = true});
    expect_like_references({.input = {2, 23, 25, 16}, .relu = true});
    expect_like_references({.input = {2, 23, 25, 3}, .relu = true});
    expect_like_references({.input = {4, 1, 1, 32}, .relu = true});
    expect_like_references({.input = {5, 1, 1, 8}});
}

TEST_P(BatchNormKernel, AgreesWithReferencesWithReluAndAddition) {
    for (const std::int64_t channels : {3, 12, 32, 320}) {
        expect_like_references({.input = {3, 7, 5, channels}, .relu = true});
        expect_like_references({.input = {3, 7, 5, channels}, .add = true, .relu = true});
    }
    expect_like_references({.input = {2, 33, 31, 64}, .add = true, .relu = true});
}

TEST_P(BatchNormKernel, AddsUpTwoOutputGradients) {
    for (const std::int64_t channels : {5, 32}) {
        expect_like_references({.input = {2, 6, 5, channels}}, true);
        expect_like_references({.input = {2, 6, 5, channels}, .relu = true}, true);
        expect_like_references({.input = {2, 6, 5, channels}, .add = true, .relu = true}, true);
    }
}

TEST_P(BatchNormKernel, NormalizesSpansOfSamplesSeparately) {
    expect_like_references({.input = {6, 4, 3, 16}, .statistics_samples = 2});
    // Spans of several chunks, which several warps combine.
    expect_like_references({.input = {6, 25, 26, 64}, .statistics_samples = 2, .relu = true});
    expect_like_references({.input = {6, 4, 3, 3}, .statistics_samples = 3, .relu = true});
    for (const std::int64_t channels : {3, 16}) {
        expect_like_references(
            {.input = {6, 4, 3, channels}, .statistics_samples = 1, .add = true, .relu = true},
            true);
    }
}

TEST_P(BatchNormKernel, TakesEpsilonAndMomentumFromTheArguments) {
    expect_like_references({.input = {2, 4, 4, 16}, .epsilon = 0.5, .momentum = 0.01});
    expect_like_references({.input = {2, 4, 4, 16}, .momentum = 1});
}

TEST_P(BatchNormKernel, KeepsItsPrecisionFarFromZero) {
    // With fp32 numbers around 1e4, E[x^2] - E[x]^2 would be wrong by about 10; the variance is 1.
    const double mean = GetParam() == DType::f32 ? 1e4 : 100;
    Given given(GetParam(), {.input = {4, 20, 20, 16}}, false, mean);
    const Written got = run(kKernels, given), twin = run(kTwins, given);
    EXPECT_TRUE(near(got.inverse_deviation, twin.inverse_deviation, 1e-5));
    EXPECT_TRUE(near(got.mean, twin.mean, 1e-6));
}

TEST_P(BatchNormKernel, UsesRunningStatisticsForInference) {
    for (const bool add : {false, true}) {
        for (const std::int64_t channels : {3, 16}) {
            const BatchNorm op{.input = {3, 4, 5, channels}, .add = add, .relu = add};
            for (const Engine& engine : {kKernels, kTwins}) {
                Given given(GetParam(), op);
                Written written(given);
                engine.running_statistics(channels, written.parameters(given), written.statistics(),
                                          nullptr);
                apply(engine, given, written);
                const naive::Solution want = solve(given, false);
                EXPECT_TRUE(near(written.y, want.output, tolerance_of(GetParam())));
                EXPECT_TRUE(same(written.running_mean, given.running_mean));
                EXPECT_TRUE(same(written.running_variance, given.running_variance));
            }
        }
    }
}

TEST_P(BatchNormKernel, TakesSumsThatAConvolutionFormed) {
    Given given(GetParam(), {.input = {6, 5, 5, 20}, .statistics_samples = 3});
    const BatchNormShape& shape = given.shape;
    std::vector<double> sum(static_cast<std::size_t>(shape.spans * shape.channels)), squares(sum);
    for (std::int64_t i = 0; i < given.x.count(); ++i) {
        const std::int64_t span = i / (shape.pixels * shape.channels);
        const auto index = static_cast<std::size_t>(span * shape.channels + i % shape.channels);
        sum[index] += given.x[i];
        squares[index] += given.x[i] * given.x[i];
    }
    Buffer sums(DType::f32, sum), sums_of_squares(DType::f32, squares);
    const Written want = run(kTwins, given);
    for (const Engine& engine : {kKernels, kTwins}) {
        Written got(given);
        engine.statistics_of_sums(shape,
                                  {sums.as<float>(), sums_of_squares.as<float>(),
                                   got.parameters(given), got.statistics()},
                                  nullptr);
        EXPECT_TRUE(near(got.mean, want.mean, 1e-6));
        EXPECT_TRUE(near(got.inverse_deviation, want.inverse_deviation, 1e-6));
        EXPECT_TRUE(near(got.scale, want.scale, 1e-6));
        EXPECT_TRUE(near(got.shift, want.shift, 1e-6));
        EXPECT_TRUE(near(got.running_mean, want.running_mean, 1e-6));
        EXPECT_TRUE(near(got.running_variance, want.running_variance, 1e-6));
    }
}

TEST_P(BatchNormKernel, NormalizesTheResidualToo) {
    for (const std::int64_t channels : {5, 24}) {
        Given given(GetParam(), {.input = {2, 5, 3, channels}, .add = true, .relu = true});
        for (const Engine& engine : {kKernels, kTwins}) {
            Written written(given);
            engine.apply(given.shape,
                         {.x = given.x.data(),
                          .scale = given.gamma.as<float>(),
                          .shift = given.beta.as<float>(),
                          .residual = given.r.data(),
                          .residual_scale = given.running_variance.as<float>(),
                          .residual_shift = given.running_mean.as<float>(),
                          .y = written.y.data(),
                          .mask = written.mask.as<std::uint32_t>(),
                          .relu = true},
                         nullptr);
            naive::Tensor want(given.op.input);
            for (std::int64_t i = 0; i < given.x.count(); ++i) {
                const std::int64_t c = i % channels;
                const double y = given.x[i] * given.gamma[c] + given.beta[c] +
                                 given.r[i] * given.running_variance[c] + given.running_mean[c];
                want[i] = std::max(y, 0.0);
                EXPECT_EQ(static_cast<int>(written.mask[i / 8]) >> i % 8 & 1, y > 0);
            }
            EXPECT_TRUE(near(written.y, want, tolerance_of(GetParam())));
        }
    }
}

TEST_P(BatchNormKernel, MayOverwriteWhatItHasRead) {
    for (const std::int64_t channels : {5, 32}) {
        Given given(GetParam(), {.input = {2, 9, 5, channels}, .add = true, .relu = true}, true);
        const Written want = run(kKernels, given);
        Written got = run(kKernels, given);
        Buffer y = given.x, gradient = given.dy0;
        kKernels.apply(given.shape,
                       {.x = y.data(),
                        .scale = got.scale.as<float>(),
                        .shift = got.shift.as<float>(),
                        .residual = given.r.data(),
                        .y = y.data(),
                        .relu = true},
                       nullptr);
        BatchNormGradientArguments of = gradient_arguments(given, got);
        of.dy0 = of.residual_gradient = of.dx = gradient.data();
        kKernels.gradient_sums(given.shape, of, nullptr);
        EXPECT_TRUE(same(gradient, want.dr));
        kKernels.gradient_apply(given.shape, of, nullptr);
        EXPECT_TRUE(same(y, want.y));
        EXPECT_TRUE(same(gradient, want.dx));
    }
}

TEST_P(BatchNormKernel, KeepsNaN) {
    for (const std::int64_t channels : {3, 16}) {
        Given given(GetParam(), {.input = {2, 3, 3, channels}, .relu = true});
        given.x.set(channels + 1, NAN);
        for (const Engine& engine : {kKernels, kTwins}) {
            const Written written = run(engine, given);
            EXPECT_TRUE(std::isnan(written.y[channels + 1]));
            EXPECT_TRUE(std::isnan(written.running_variance[1]));
            EXPECT_FALSE(std::isnan(written.running_variance[0]));
        }
    }
}

TEST_P(BatchNormKernel, GivesTheSameBitsAgain) {
    Given given(GetParam(), {.input = {5, 17, 13, 48}, .add = true, .relu = true}, true);
    const Written one = run(kKernels, given), two = run(kKernels, given);
    EXPECT_TRUE(same(one.y, two.y));
    EXPECT_TRUE(same(one.dx, two.dx));
    EXPECT_TRUE(same(one.dgamma, two.dgamma));
    EXPECT_TRUE(same(one.mask, two.mask));
    EXPECT_TRUE(same(one.workspace, two.workspace));
}
INSTANTIATE_TEST_SUITE_P(Dtypes, BatchNormKernel, testing::ValuesIn(kComputeDtypes), dtype_name);

}  // namespace
}  // namespace hpcai::kernels
