// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include <hpcai/ops/operation.hpp>
#include <hpcai/reference/naive_int8.hpp>
#include <hpcai/reference/naive_random.hpp>

#include "device/kernel_runner.hpp"

namespace hpcai::device {
namespace {

constexpr naive::StepPosition kPosition{.training_step = 7, .micro_batch = 3};
constexpr RoundingKey kKey{.seed = 0x123456789abcdef0, .model = 3, .rank = 1, .node = 17};

std::vector<DeviceRow> int8_rows() {
    std::vector<DeviceRow> rows;
    if (!make_cpu_device({})->has_int8()) return rows;
    for (DeviceRow row : cpu_rows()) {
        if (row.compute != tensor::DType::f32) continue;
        row.name += "_int8";
        row.int8 = true;
        row.rounding = kKey;
        row.step = {.skipped_steps = 2, .taken_steps = 5, .micro_batch = 3};
        rows.push_back(row);
    }
    return rows;
}

/// Multiplies samples by powers of two, so that using the step of another sample is detected.
void spread_samples(naive::Tensor& x) {
    for (std::int64_t i = 0; i < x.shape.elements(); ++i) {
        x[i] *= std::ldexp(1.0, static_cast<int>(i / naive::elements_of_sample(x)));
    }
}

naive::Problem problem_of(const ops::Convolution& op) {
    naive::Random random(tensor::DType::f32, 1);
    naive::Problem problem{.operation = op};
    problem.inputs = {random.normal(op.input, 0.5)};
    problem.parameters = {random.normal({op.filters, op.kernel, op.kernel, op.input[3]})};
    // Channels of very different magnitudes, so that using the step of another channel is detected.
    for (std::int64_t i = 0; i < problem.parameters[0].shape.elements(); ++i) {
        const std::int64_t channel = i % op.input[3];
        const std::int64_t filter = i / (op.kernel * op.kernel * op.input[3]);
        problem.parameters[0][i] *= std::ldexp(1.0, static_cast<int>(channel % 5 - filter % 7));
    }
    problem.output_gradients = {random.normal(output_shape(op), 0, 1e-6)};
    spread_samples(problem.inputs[0]);
    spread_samples(problem.output_gradients[0]);
    return problem;
}

/// Returns `count` samples from `first` on.
naive::Tensor samples_of(const naive::Tensor& x, std::int64_t first, std::int64_t count) {
    const std::int64_t each = naive::elements_of_sample(x);
    tensor::Shape shape = x.shape;
    shape[0] = count;
    naive::Tensor part(shape);
    for (std::int64_t i = 0; i < count * each; ++i) part[i] = x[first * each + i];
    return part;
}

naive::Problem samples_of(const naive::Problem& problem, std::int64_t first, std::int64_t count) {
    naive::Problem part = problem;
    std::get<ops::Convolution>(part.operation).input[0] = count;
    part.inputs = {samples_of(problem.inputs[0], first, count)};
    part.output_gradients = {samples_of(problem.output_gradients[0], first, count)};
    return part;
}

class Int8Convolution : public testing::TestWithParam<DeviceRow> {
protected:
    static void expect_equal(const naive::Tensor& got, const naive::Tensor& want,
                             const std::string& what) {
        ASSERT_EQ(got.shape, want.shape) << what;
        for (std::int64_t i = 0; i < want.shape.elements(); ++i) {
            ASSERT_EQ(got[i], want[i]) << what << " at " << i;
        }
    }

    static void expect_integer_sums(const ops::Convolution& op) {
        SCOPED_TRACE(to_string(op.input) + " by " + std::to_string(op.kernel));
        const naive::Problem problem = problem_of(op);
        const naive::Solution got = KernelRunner(GetParam(), problem).run();
        const naive::Int8Solution want = solve_int8(op, problem, kKey, kPosition);
        expect_equal(got.output, want.output, "output");
        const naive::Solution exact = solve(problem);
        expect_close(got.parameter_gradients[0], exact.parameter_gradients[0],
                     GetParam().tolerance.filters, "filter gradient");
        if (computes_in_int8(op, ops::Pass::input_gradient)) {
            expect_equal(got.input_gradients[0], want.input_gradient, "input gradient");
        } else {
            expect_close(got.input_gradients[0], exact.input_gradients[0],
                         GetParam().tolerance.stored, "input gradient");
        }
    }
};

TEST_P(Int8Convolution, EqualsIntegerSumsOfRoundedFactorsFor1x1) {
    expect_integer_sums({.input = {2, 5, 7, 32}, .filters = 48, .kernel = 1});
    expect_integer_sums({.input = {3, 4, 4, 64}, .filters = 16, .kernel = 1});
    expect_integer_sums({.input = {1, 1, 1, 32}, .filters = 16, .kernel = 1});
    expect_integer_sums({.input = {2, 8, 7, 32}, .filters = 64, .kernel = 1, .stride = 2});
    expect_integer_sums({.input = {2, 31, 19, 32}, .filters = 32, .kernel = 1});
}

TEST_P(Int8Convolution, EqualsIntegerSumsOfRoundedFactorsFor3x3) {
    expect_integer_sums({.input = {2, 7, 9, 32}, .filters = 16, .kernel = 3, .padding = 1});
    expect_integer_sums({.input = {5, 3, 3, 64}, .filters = 80, .kernel = 3, .padding = 1});
    expect_integer_sums({.input = {1, 6, 5, 48}, .filters = 32, .kernel = 3});
    expect_integer_sums(
        {.input = {2, 8, 6, 32}, .filters = 16, .kernel = 3, .stride = 2, .padding = 1});
}

/// Returns a problem of the largest numbers: +127, and -127 for filters where `is_negative`.
template <typename IsNegative>
naive::Problem largest_factors(const ops::Convolution& op, const IsNegative& is_negative) {
    naive::Problem problem{.operation = op};
    problem.inputs = {naive::Tensor(op.input, 127)};
    problem.output_gradients = {naive::Tensor(output_shape(op), 127)};
    problem.parameters = {naive::Tensor({op.filters, op.kernel, op.kernel, op.input[3]}, 127)};
    const std::int64_t of_filter = op.kernel * op.kernel * op.input[3];
    naive::Tensor& filters = problem.parameters[0];
    for (std::int64_t i = 0; i < filters.shape.elements(); ++i) {
        if (is_negative(i / of_filter, i % op.input[3])) filters[i] = -127;
    }
    filters[0] = 126;  // makes the sum odd
    return problem;
}

// The odd sums exceed 2^24, so fp32 rounds them. With factors shifted by 128, sums reach 1.3e8.
TEST_P(Int8Convolution, SumsTheLargestFactorsExactly) {
    const ops::Convolution op{.input = {1, 2, 2, 4096}, .filters = 4096, .kernel = 1};
    constexpr int kLargest = 127 * 127 * 4096;
    naive::Problem problem = largest_factors(op, [](auto filter, auto) { return filter % 2 == 1; });
    const naive::Solution forward = KernelRunner(GetParam(), problem).run();
    problem = largest_factors(op, [](auto, auto channel) { return channel % 2 == 1; });
    const naive::Solution backward = KernelRunner(GetParam(), problem).run();
    for (const naive::Tensor* sums : {&forward.output, &backward.input_gradients[0]}) {
        EXPECT_EQ((*sums)[0], static_cast<float>(kLargest - 127));
        EXPECT_EQ((*sums)[1], static_cast<float>(-kLargest));
        EXPECT_EQ((*sums)[4 * 4096 - 2], static_cast<float>(kLargest));
    }
}

// Uses as many products as a 32-bit sum can hold: nearly 2^16 of up to 255 x 127.
TEST_P(Int8Convolution, SumsAsManyTermsAsThereMayBe) {
    constexpr std::int64_t kMany = 7280, kCentre = 4;  // of 3 x 3 pixels
    const float largest = 127.0f * 127 * 9 * kMany;
    const auto all_positive = [](auto, auto) { return false; };
    ops::Convolution op{.input = {1, 3, 3, kMany}, .filters = 16, .kernel = 3, .padding = 1};
    ASSERT_TRUE(computes_in_int8(op, ops::Pass::forward));
    naive::Solution got = KernelRunner(GetParam(), largest_factors(op, all_positive)).run();
    EXPECT_EQ(got.output[kCentre * 16 + 1], largest);
    op = {.input = {1, 3, 3, 32}, .filters = kMany, .kernel = 3, .padding = 1};
    ASSERT_TRUE(computes_in_int8(op, ops::Pass::input_gradient));
    got = KernelRunner(GetParam(), largest_factors(op, all_positive)).run();
    EXPECT_EQ(got.input_gradients[0][kCentre * 32 + 1], largest);
}

TEST_P(Int8Convolution, LeavesTheOthersInFp32) {
    for (const ops::Convolution& op :
         {ops::Convolution{.input = {2, 9, 9, 3}, .filters = 16, .kernel = 7, .padding = 3},
          ops::Convolution{.input = {2, 4, 4, 64}, .filters = 3, .kernel = 1}}) {
        ASSERT_FALSE(computes_in_int8(op, ops::Pass::forward));
        expect_agreement(GetParam(), problem_of(op));
    }
}

TEST_P(Int8Convolution, TakesOtherRandomNumbersForAnythingElse) {
    const ops::Convolution op{.input = {2, 4, 4, 32}, .filters = 16, .kernel = 1};
    const naive::Problem problem = problem_of(op);
    const auto gradient = [&](const DeviceRow& row) {
        return KernelRunner(row, problem).run().input_gradients[0].values;
    };
    const std::vector<double> first = gradient(GetParam());
    EXPECT_EQ(gradient(GetParam()), first);
    const auto expect_other = [&](auto change, const std::string& what) {
        DeviceRow row = GetParam();
        change(row);
        const std::vector<double> other = gradient(row);
        std::size_t equal = 0;
        for (std::size_t i = 0; i < first.size(); ++i) equal += other[i] == first[i];
        EXPECT_LT(equal, first.size() / 4) << what;
    };
    expect_other([](DeviceRow& row) { row.rounding.seed ^= std::uint64_t{1} << 40; }, "seed");
    expect_other([](DeviceRow& row) { ++row.rounding.model; }, "model");
    expect_other([](DeviceRow& row) { ++row.rounding.rank; }, "rank");
    expect_other([](DeviceRow& row) { ++row.rounding.node; }, "node");
    expect_other([](DeviceRow& row) { ++row.step.taken_steps; }, "taken step");
    expect_other([](DeviceRow& row) { ++row.step.skipped_steps; }, "skipped step");
    expect_other([](DeviceRow& row) { ++row.step.micro_batch; }, "micro-batch");
    // 2^26 samples of 64 blocks of random numbers use the entire 32-bit counter.
    expect_other([](DeviceRow& row) { row.step.micro_batch += 1u << 25; }, "2^26 samples on");
}

// Over many steps, the mean of the gradients equals that of the exact dy and the rounded filters.
TEST_P(Int8Convolution, RoundsGradientsWithoutBias) {
    constexpr std::uint32_t kSteps = 300;
    const ops::Convolution op{.input = {1, 4, 4, 32}, .filters = 16, .kernel = 1};
    const naive::Problem problem = problem_of(op);
    naive::Tensor mean(op.input);
    DeviceRow row = GetParam();
    for (std::uint32_t step = 0; step < kSteps; ++step) {
        row.step.taken_steps = step;
        const naive::Tensor one = KernelRunner(row, problem).run().input_gradients[0];
        for (std::int64_t i = 0; i < op.input.elements(); ++i) mean[i] += one[i] / kSteps;
    }
    const naive::Tensor& dy = problem.output_gradients[0];
    const naive::Rounded filters =
        naive::round_to_nearest(problem.parameters[0], 32, [](auto i) { return i % 32; });
    const double step = naive::steps_of(dy, 1, [](auto) { return 0; }).front();
    double squares = 0;  // of deviations in standard errors
    for (std::int64_t i = 0; i < op.input.elements(); ++i) {
        double exact = 0, variance = 0;
        for (std::int64_t k = 0; k < op.filters; ++k) {
            const std::int64_t at = k * 32 + i % 32;
            const double filter = filters.values[at] * filters.step[static_cast<std::size_t>(at)];
            const double units = dy[i / 32 * op.filters + k] / step;
            const double above = units - std::floor(units);
            exact += units * step * filter;
            variance += above * (1 - above) * step * step * filter * filter;
        }
        const double deviation = (mean[i] - exact) / std::sqrt(variance / kSteps);
        EXPECT_LT(std::abs(deviation), 5) << i;
        squares += deviation * deviation;
    }
    EXPECT_NEAR(squares / static_cast<double>(op.input.elements()), 1, 0.3);
}

TEST_P(Int8Convolution, PassesOnWhatIsNotFinite) {
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
    const ops::Convolution op{.input = {2, 4, 4, 32}, .filters = 16, .kernel = 1};
    const auto all_nan = [](const naive::Tensor& tensor, auto wanted) {
        for (std::int64_t i = 0; i < tensor.shape.elements(); ++i) {
            EXPECT_EQ(std::isnan(tensor[i]), wanted(i)) << i;
        }
    };
    const auto never = [](auto) { return false; };
    for (const double value : {kInfinity, -kInfinity, kNan}) {
        naive::Problem problem = problem_of(op);
        problem.inputs[0][100] = value;
        naive::Solution got = KernelRunner(GetParam(), problem).run();
        all_nan(got.output, [](auto i) { return i < 16 * 16; });
        all_nan(got.input_gradients[0], never);
        problem = problem_of(op);
        problem.output_gradients[0][100] = value;
        got = KernelRunner(GetParam(), problem).run();
        all_nan(got.output, never);
        all_nan(got.input_gradients[0], [](auto i) { return i < 16 * 32; });
        problem = problem_of(op);
        problem.parameters[0][5 * 32 + 9] = value;
        got = KernelRunner(GetParam(), problem).run();
        all_nan(got.output, [](auto i) { return i % 16 == 5; });
        all_nan(got.input_gradients[0], [](auto i) { return i % 32 == 9; });
    }
}

TEST_P(Int8Convolution, GivesASampleTheSameBitsWhateverOthersHold) {
    const ops::Convolution op{.input = {3, 9, 7, 32}, .filters = 16, .kernel = 3, .padding = 1};
    naive::Problem problem = problem_of(op);
    const naive::Solution first = KernelRunner(GetParam(), problem).run();
    for (naive::Tensor* x : {&problem.inputs[0], &problem.output_gradients[0]}) {
        const std::int64_t each = naive::elements_of_sample(*x);
        for (std::int64_t i = 0; i < each; ++i) (*x)[i] *= 1000, (*x)[2 * each + i] /= 1000;
        (*x)[each - 1] = std::numeric_limits<double>::quiet_NaN();
    }
    const naive::Solution other = KernelRunner(GetParam(), problem).run();
    expect_equal(samples_of(other.output, 1, 1), samples_of(first.output, 1, 1), "output");
    expect_equal(samples_of(other.input_gradients[0], 1, 1),
                 samples_of(first.input_gradients[0], 1, 1), "input gradient");
}

TEST_P(Int8Convolution, GivesASampleTheSameBitsInMicroBatchesOfAnySize) {
    const naive::Problem problem =
        problem_of({.input = {4, 5, 6, 48}, .filters = 32, .kernel = 3, .padding = 1});
    DeviceRow row = GetParam();
    row.step.micro_batch = 0;
    const naive::Solution whole = KernelRunner(row, problem).run();
    for (const std::int64_t samples : {1, 2}) {
        for (std::int64_t first = 0; first < 4; first += samples) {
            row.step.micro_batch = static_cast<std::uint32_t>(first / samples);
            const naive::Solution part =
                KernelRunner(row, samples_of(problem, first, samples)).run();
            expect_equal(part.output, samples_of(whole.output, first, samples), "output");
            expect_equal(part.input_gradients[0],
                         samples_of(whole.input_gradients[0], first, samples), "input gradient");
        }
    }
}

TEST_P(Int8Convolution, FindsASamplesLargestNumberWhereverItIs) {
    const ops::Convolution op{.input = {2, 24, 24, 32}, .filters = 32, .kernel = 1};
    const std::int64_t each = op.input.elements() / 2;  // more than threads process at a time
    for (const std::int64_t place : {std::int64_t{0}, each / 2, each - 1}) {
        naive::Problem problem = problem_of(op);
        problem.inputs[0][each + place] = -1000;
        problem.output_gradients[0][each + place] = 1;
        const naive::Solution got = KernelRunner(GetParam(), problem).run();
        const naive::Int8Solution want = solve_int8(op, problem, kKey, kPosition);
        expect_equal(got.output, want.output, "output");
        expect_equal(got.input_gradients[0], want.input_gradient, "input gradient");
    }
}

TEST_P(Int8Convolution, KeepsZerosAndTheSmallestNumbers) {
    const ops::Convolution op{.input = {2, 4, 4, 32}, .filters = 16, .kernel = 1};
    naive::Problem problem = problem_of(op);
    problem.inputs = {naive::Tensor(op.input)};
    problem.output_gradients = {naive::Tensor(output_shape(op))};
    naive::Solution got = KernelRunner(GetParam(), problem).run();
    EXPECT_EQ(got.output.values, naive::Tensor(output_shape(op)).values);
    EXPECT_EQ(got.input_gradients[0].values, naive::Tensor(op.input).values);
    problem.inputs = {naive::Tensor(op.input, 0x1p-126)};
    problem.parameters = {naive::Tensor({16, 1, 1, 32}, 1)};
    got = KernelRunner(GetParam(), problem).run();
    for (const double value : got.output.values) EXPECT_NEAR(value, 0x1p-121, 0x1p-127);
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(Int8Convolution);
INSTANTIATE_TEST_SUITE_P(Devices, Int8Convolution, testing::ValuesIn(int8_rows()),
                         [](const auto& test) { return to_string(test.param); });

TEST(Int8Convolutions, HaveTheSameBitsWithAnyThreadsAndLayout) {
    const std::vector<DeviceRow> rows = int8_rows();
    if (rows.empty()) GTEST_SKIP() << "this CPU does not multiply int8";
    const ops::Convolution op{.input = {3, 9, 11, 64}, .filters = 48, .kernel = 3, .padding = 1};
    const naive::Problem problem = problem_of(op);
    const naive::Solution first = KernelRunner(rows.front(), problem).run();
    for (const DeviceRow& row : rows) {
        const naive::Solution other = KernelRunner(row, problem).run();
        EXPECT_EQ(other.output.values, first.output.values) << row.name;
        EXPECT_EQ(other.input_gradients[0].values, first.input_gradients[0].values) << row.name;
    }
}

// oneDNN uses another kernel for padded convolutions of this size than for small ones.
TEST(Int8Convolutions, EqualIntegerSumsWherePaddedImagesAreLarge) {
    const std::vector<DeviceRow> rows = int8_rows();
    if (rows.empty()) GTEST_SKIP() << "this CPU does not multiply int8";
    const auto agree = [](const DeviceRow& row, const ops::Convolution& op) {
        const naive::Problem problem = problem_of(op);
        const naive::Solution got = KernelRunner(row, problem).run();
        const naive::Int8Solution want = solve_int8(op, problem, kKey, kPosition);
        EXPECT_EQ(got.output.values, want.output.values) << to_string(op.input);
        if (!computes_in_int8(op, ops::Pass::input_gradient)) return;
        EXPECT_EQ(got.input_gradients[0].values, want.input_gradient.values) << to_string(op.input);
    };
    agree(rows.front(), {.input = {1, 96, 96, 256}, .filters = 16, .kernel = 3, .padding = 1});
    agree(rows.back(), {.input = {1, 96, 96, 32}, .filters = 256, .kernel = 3, .padding = 1});
    agree(rows.front(),
          {.input = {2, 96, 96, 256}, .filters = 16, .kernel = 3, .stride = 2, .padding = 1});
}

// One thread processes five large samples one at a time; two threads process two at a time, three
// process three.
TEST(Int8Convolutions, EqualIntegerSumsWhereSamplesAreTakenInParts) {
    const std::vector<DeviceRow> rows = int8_rows();
    if (rows.empty()) GTEST_SKIP() << "this CPU does not multiply int8";
    const ops::Convolution op{.input = {5, 64, 64, 32}, .filters = 32, .kernel = 3, .padding = 1};
    const naive::Problem problem = problem_of(op);
    const naive::Int8Solution want = solve_int8(op, problem, kKey, kPosition);
    for (const DeviceRow& row : rows) {
        const naive::Solution got = KernelRunner(row, problem).run();
        EXPECT_EQ(got.output.values, want.output.values) << row.name;
        EXPECT_EQ(got.input_gradients[0].values, want.input_gradient.values) << row.name;
    }
}

}  // namespace
}  // namespace hpcai::device
