// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/buffer.hpp"
#include "kernels/reference/batch_norm.hpp"

namespace hpcai::kernels {
namespace {

/// The kernels, or their naive references.
struct RankEngine {
    decltype(&batch_norm_moments) moments;
    decltype(&batch_norm_statistics_from_moments) statistics_of_moments;
    decltype(&batch_norm_gradient_sums) gradient_sums;
    decltype(&batch_norm_gradient_coefficients) coefficients;
};
constexpr RankEngine kRankKernels{batch_norm_moments, batch_norm_statistics_from_moments,
                                  batch_norm_gradient_sums, batch_norm_gradient_coefficients};
constexpr RankEngine kRankTwins{
    reference::batch_norm_moments, reference::batch_norm_statistics_from_moments,
    reference::batch_norm_gradient_sums, reference::batch_norm_gradient_coefficients};

constexpr int kRanks = 3;

/// The operands of a step of one rank with the whole batch, or of kRanks ranks with a share each.
struct Step {
    Step(DType dtype, std::int64_t pixels_of_rank, std::int64_t channels, double mean)
        : rank{dtype, 1, pixels_of_rank, channels},
          whole{dtype, 1, kRanks * pixels_of_rank, channels},
          x(contents.normal(dtype, whole.pixels * channels)),
          dy(contents.normal(dtype, x.count())),
          gamma(contents.normal(DType::f32, channels)),
          beta(contents.normal(DType::f32, channels)),
          running_mean(contents.normal(DType::f32, channels)),
          running_variance(contents.normal(DType::f32, channels)),
          statistics(DType::f32, 4 * channels),
          gradients(DType::f32, 2 * channels),
          coefficients(DType::f32, 3 * channels),
          workspace(DType::u8, static_cast<std::int64_t>(batch_norm_workspace_bytes(whole))) {
        for (std::int64_t i = 0; i < x.count(); ++i) x.set(i, x[i] + mean);
    }

    BatchNormParameters parameters() {
        return {gamma.as<float>(), beta.as<float>(), running_mean.as<float>(),
                running_variance.as<float>()};
    }
    BatchNormStatistics written() {
        auto* const first = statistics.as<float>();
        return {first, first + rank.channels, first + 2 * rank.channels, first + 3 * rank.channels};
    }
    /// Returns arguments for the pixels from `pixel` on.
    BatchNormGradientArguments gradient_of(std::int64_t pixel) {
        return {.x = at(x, pixel),
                .dy0 = at(dy, pixel),
                .gamma = gamma.as<float>(),
                .statistics = written(),
                .relu = true,
                .gamma_gradient = gradients.as<float>(),
                .beta_gradient = gradients.as<float>() + rank.channels,
                .workspace = workspace.data()};
    }
    const void* at(const Buffer& numbers, std::int64_t pixel) const {
        return static_cast<const std::byte*>(numbers.data()) +
               static_cast<std::size_t>(pixel * rank.channels) * size_of(rank.dtype);
    }

    Contents contents{5};
    BatchNormShape rank, whole;
    Buffer x, dy, gamma, beta, running_mean, running_variance;
    Buffer statistics;    // (4, C)
    Buffer gradients;     // (2, C)
    Buffer coefficients;  // (3, C)
    Buffer workspace;
};

void add_sums(std::vector<double>& sums, const std::vector<double>& more) {
    for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += more[i];
}

void run_ranks(const RankEngine& engine, Step& step) {
    const auto count = static_cast<std::size_t>(2 * step.rank.channels);
    std::vector<double> moments(count), sums(count), own(count);
    for (int rank = 0; rank < kRanks; ++rank) {
        const void* x = step.at(step.x, rank * step.rank.pixels);
        engine.moments(step.rank, {x, own.data(), step.workspace.data()}, nullptr);
        add_sums(moments, own);
    }
    engine.statistics_of_moments(
        step.rank, {moments.data(), kRanks, step.parameters(), step.written()}, nullptr);
    for (int rank = 0; rank < kRanks; ++rank) {
        engine.gradient_sums(step.rank, step.gradient_of(rank * step.rank.pixels), nullptr);
        for (std::size_t i = 0; i < count; ++i) {
            own[i] = step.gradients[static_cast<std::int64_t>(i)];
        }
        add_sums(sums, own);
    }
    engine.coefficients(step.rank,
                        {sums.data(), kRanks, step.gamma.as<float>(), step.written(),
                         step.coefficients.as<float>()},
                        nullptr);
}

/// Runs the naive references without ranks.
void run_whole(Step& step) {
    reference::batch_norm_statistics(
        step.whole, {step.x.data(), step.parameters(), step.written(), nullptr}, nullptr);
    reference::batch_norm_gradient_sums(step.whole, step.gradient_of(0), nullptr);
    const auto* coefficients = step.workspace.as<float>();
    for (std::int64_t i = 0; i < step.coefficients.count(); ++i) {
        step.coefficients.set(i, coefficients[i]);
    }
}

class BatchNormRanks : public ForEachDtype {
protected:
    static void expect_statistics(const Step& ranks, const Step& whole) {
        EXPECT_TRUE(near(ranks.statistics, whole.statistics, 1e-5));
        EXPECT_TRUE(near(ranks.running_mean, whole.running_mean, 1e-6));
        EXPECT_TRUE(near(ranks.running_variance, whole.running_variance, 1e-5));
    }

    void expect_step_of_whole_batch(std::int64_t pixels_of_rank, std::int64_t channels) {
        SCOPED_TRACE(channels);
        Step whole(GetParam(), pixels_of_rank, channels, 0.5);
        run_whole(whole);
        for (const RankEngine& engine : {kRankKernels, kRankTwins}) {
            Step ranks(GetParam(), pixels_of_rank, channels, 0.5);
            run_ranks(engine, ranks);
            expect_statistics(ranks, whole);
            EXPECT_TRUE(near(ranks.coefficients, whole.coefficients, 1e-5));
            EXPECT_TRUE(ranks.workspace.guard_is_intact());
        }
    }
};

TEST_P(BatchNormRanks, HaveTheStatisticsAndGradientsOfTheWholeBatch) {
    for (const std::int64_t channels : {1, 5, 8, 24, 320}) {
        expect_step_of_whole_batch(30, channels);
        expect_step_of_whole_batch(1, channels);
    }
    expect_step_of_whole_batch(2100, 16);
}

TEST_P(BatchNormRanks, KeepTheirPrecisionFarFromZero) {
    // The variance is 1.
    const double mean = GetParam() == DType::f32 ? 1e4 : 100;
    Step whole(GetParam(), 400, 16, mean);
    run_whole(whole);
    for (const RankEngine& engine : {kRankKernels, kRankTwins}) {
        Step ranks(GetParam(), 400, 16, mean);
        run_ranks(engine, ranks);
        expect_statistics(ranks, whole);
    }
}

TEST_P(BatchNormRanks, KeepNaN) {
    for (const RankEngine& engine : {kRankKernels, kRankTwins}) {
        Step step(GetParam(), 10, 3, 0.5);
        step.x.set(3 * 12 + 1, NAN);  // of the second rank
        run_ranks(engine, step);
        EXPECT_TRUE(std::isnan(step.running_variance[1]));
        EXPECT_TRUE(std::isnan(step.coefficients[1]));
        EXPECT_FALSE(std::isnan(step.running_variance[0]));
        EXPECT_FALSE(std::isnan(step.coefficients[0]));
    }
}

INSTANTIATE_TEST_SUITE_P(Dtypes, BatchNormRanks, testing::ValuesIn(kComputeDtypes), dtype_name);

}  // namespace
}  // namespace hpcai::kernels
