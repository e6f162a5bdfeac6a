// SPDX-License-Identifier: Apache-2.0
#include "kernels/group_norm.hpp"

#include <array>
#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/buffer.hpp"
#include "kernels/host_numbers.hpp"

namespace hpcai::kernels {
namespace reference {

/// Channels [first, end) of a sample that share their statistics.
struct Group {
    std::int64_t sample, first, end;
};

/// Calls body(group) for all groups, and for the channels that are only stored.
template <typename Body>
void for_each_group(const GroupNormShape& shape, const Body& body) {
    const std::int64_t per_group = shape.channels / shape.groups, stored = shape.spans.channels;
    for (std::int64_t sample = 0; sample < shape.spans.spans; ++sample) {
        for (std::int64_t first = 0; first < shape.channels; first += per_group) {
            body(Group{sample, first, first + per_group});
        }
        if (stored > shape.channels) body(Group{sample, shape.channels, stored});
    }
}

/// Calls body(channel, element, index in (samples, stored C)) for all elements of a group.
template <typename Body>
void for_each_element(const BatchNormShape& spans, const Group& group, const Body& body) {
    for (std::int64_t pixel = 0; pixel < spans.pixels; ++pixel) {
        for (std::int64_t channel = group.first; channel < group.end; ++channel) {
            body(channel, (group.sample * spans.pixels + pixel) * spans.channels + channel,
                 group.sample * spans.channels + channel);
        }
    }
}

inline double count_of(const BatchNormShape& spans, const Group& group) {
    return static_cast<double>(spans.pixels * (group.end - group.first));
}

inline void group_norm_statistics(const GroupNormShape& shape,
                                  const GroupNormStatisticsArguments& arguments, Stream) {
    const BatchNormShape& spans = shape.spans;
    for_each_group(shape, [&](const Group& group) {
        double mean = 0, variance = 0;
        const double count = count_of(spans, group);
        for_each_element(spans, group, [&](std::int64_t, std::int64_t element, std::int64_t) {
            mean += get(spans.dtype, arguments.x, element) / count;
        });
        for_each_element(spans, group, [&](std::int64_t, std::int64_t element, std::int64_t) {
            const double difference = get(spans.dtype, arguments.x, element) - mean;
            variance += difference * difference / count;
        });
        const double inverse = 1 / std::sqrt(variance + arguments.epsilon);
        for (std::int64_t channel = group.first; channel < group.end; ++channel) {
            const std::int64_t at = group.sample * spans.channels + channel;
            const bool real = channel < shape.channels;
            const double scale = real ? arguments.gamma[channel] * inverse : 0;
            const double beta = real ? arguments.beta[channel] : 0;
            arguments.statistics.scale[at] = static_cast<float>(scale);
            arguments.statistics.shift[at] = static_cast<float>(beta - mean * scale);
            arguments.statistics.mean[at] = static_cast<float>(mean);
            arguments.statistics.inverse_deviation[at] = static_cast<float>(inverse);
        }
    });
}

inline void group_norm_gradient_sums(const GroupNormShape& shape,
                                     const GroupNormGradientArguments& arguments, Stream) {
    const BatchNormShape& spans = shape.spans;
    const BatchNormStatistics& statistics = arguments.statistics;
    const std::int64_t all = spans.spans * spans.channels;
    std::vector<double> of_gamma(static_cast<std::size_t>(spans.channels)), of_beta = of_gamma;
    for_each_group(shape, [&](const Group& group) {
        double sum = 0, products = 0;
        for_each_element(
            spans, group, [&](std::int64_t channel, std::int64_t element, std::int64_t at) {
                const double x = get(spans.dtype, arguments.x, element);
                double g = get(spans.dtype, arguments.dy0, element);
                if (arguments.dy1 != nullptr) g += get(spans.dtype, arguments.dy1, element);
                if (arguments.relu && x * statistics.scale[at] + statistics.shift[at] <= 0) g = 0;
                const double xhat = (x - statistics.mean[at]) * statistics.inverse_deviation[at];
                const double gamma = channel < shape.channels ? arguments.gamma[channel] : 0;
                of_gamma[channel] += g * xhat;
                of_beta[channel] += g;
                sum += gamma * g;
                products += gamma * g * xhat;
            });
        for (std::int64_t channel = group.first; channel < group.end; ++channel) {
            const std::int64_t at = group.sample * spans.channels + channel;
            const double inverse = statistics.inverse_deviation[at], count = count_of(spans, group);
            const double by_input = -inverse * inverse * products / count;
            const double gamma = channel < shape.channels ? arguments.gamma[channel] : 0;
            arguments.coefficients[at] = static_cast<float>(gamma * inverse);
            arguments.coefficients[all + at] = static_cast<float>(by_input);
            arguments.coefficients[2 * all + at] =
                static_cast<float>(-inverse * sum / count - by_input * statistics.mean[at]);
        }
    });
    for (std::int64_t channel = 0; channel < shape.channels; ++channel) {
        const auto at = static_cast<std::size_t>(channel);
        arguments.gamma_gradient[channel] = static_cast<float>(of_gamma[at]);
        arguments.beta_gradient[channel] = static_cast<float>(of_beta[at]);
    }
}

}  // namespace reference

namespace {

constexpr double kGroupTolerance = 4e-6;

/// (samples, pixels, C, stored C, groups)
const std::vector<std::array<std::int64_t, 5>> kGroupShapes{
    {3, 30, 16, 16, 4},  {2, 7, 64, 64, 32},  {2, 50, 64, 64, 2}, {2, 30, 24, 24, 3},
    {3, 10, 21, 21, 7},  {2, 9, 16, 16, 16},  {2, 20, 3, 4, 3},   {2, 20, 3, 4, 1},
    {1, 5, 600, 600, 2}, {2, 3000, 32, 32, 4}};

/// Returns the tolerance of fp32 sums of so many numbers near 1, which cancel.
double sum_tolerance(const BatchNormShape& spans) {
    return 1e-5 + 1e-6 * std::sqrt(static_cast<double>(spans.spans * spans.pixels));
}

struct Statistics {
    Buffer mean, inverse_deviation, scale, shift;

    explicit Statistics(std::int64_t count)
        : mean(DType::f32, count),
          inverse_deviation(DType::f32, count),
          scale(DType::f32, count),
          shift(DType::f32, count) {}
    BatchNormStatistics addresses() {
        return {mean.as<float>(), inverse_deviation.as<float>(), scale.as<float>(),
                shift.as<float>()};
    }
};

class GroupNormKernels : public ForEachDtype {
protected:
    Contents contents_{35};

    GroupNormShape shape_of(const std::array<std::int64_t, 5>& extents) const {
        const auto& [samples, pixels, channels, stored, groups] = extents;
        return {{GetParam(), samples, pixels, stored}, channels, groups};
    }
    /// Returns numbers near `mean`, and zeros where channels are only stored.
    Buffer image(const GroupNormShape& shape, double mean) {
        const BatchNormShape& spans = shape.spans;
        Buffer numbers = contents_.normal(GetParam(), spans.spans * spans.pixels * spans.channels);
        for (std::int64_t i = 0; i < numbers.count(); ++i) {
            numbers.set(i, i % spans.channels < shape.channels ? numbers[i] + mean : 0);
        }
        return numbers;
    }
    static Buffer workspace_of(const GroupNormShape& shape) {
        return {DType::u8, static_cast<std::int64_t>(batch_norm_workspace_bytes(shape.spans))};
    }
};

TEST_P(GroupNormKernels, StatisticsAreTheReferences) {
    for (const auto& extents : kGroupShapes) {
        const GroupNormShape shape = shape_of(extents);
        const Buffer x = image(shape, 0.5), gamma = contents_.normal(DType::f32, shape.channels);
        const Buffer beta = contents_.normal(DType::f32, shape.channels);
        Buffer workspace = workspace_of(shape);
        const std::int64_t count = shape.spans.spans * shape.spans.channels;
        Statistics got(count), expected(count);
        GroupNormStatisticsArguments arguments{x.data(),
                                               static_cast<const float*>(gamma.data()),
                                               static_cast<const float*>(beta.data()),
                                               1e-5,
                                               got.addresses(),
                                               workspace.data()};
        group_norm_statistics(shape, arguments, nullptr);
        arguments.statistics = expected.addresses();
        reference::group_norm_statistics(shape, arguments, nullptr);
        SCOPED_TRACE(testing::PrintToString(extents));
        EXPECT_TRUE(near(got.mean, expected.mean, kGroupTolerance));
        EXPECT_TRUE(workspace.guard_is_intact());
        if (extents[2] < extents[3]) continue;  // without variance, results are not compared
        EXPECT_TRUE(near(got.inverse_deviation, expected.inverse_deviation, kGroupTolerance));
        EXPECT_TRUE(near(got.scale, expected.scale, kGroupTolerance));
        EXPECT_TRUE(near(got.shift, expected.shift, kGroupTolerance));
    }
}

TEST_P(GroupNormKernels, ChannelsThatAreOnlyStoredStayZero) {
    const GroupNormShape shape = shape_of({2, 20, 3, 4, 3});
    const Buffer x = image(shape, 0.5), gamma = contents_.normal(DType::f32, 3);
    const Buffer beta = contents_.normal(DType::f32, 3);
    Buffer workspace = workspace_of(shape);
    Statistics got(8);
    group_norm_statistics(
        shape,
        {x.data(), static_cast<const float*>(gamma.data()), static_cast<const float*>(beta.data()),
         1e-5, got.addresses(), workspace.data()},
        nullptr);
    for (const std::int64_t at : {3, 7}) {
        EXPECT_EQ(got.scale[at], 0);
        EXPECT_EQ(got.shift[at], 0);
    }
}

TEST_P(GroupNormKernels, VariancesStayPreciseWithALargeMean) {
    if (GetParam() != DType::f32) GTEST_SKIP() << "half types cannot distinguish such numbers";
    const GroupNormShape shape = shape_of({2, 500, 16, 16, 2});
    const Buffer x = image(shape, 3000), gamma(DType::f32, std::vector<double>(16, 1.0));
    const Buffer beta(DType::f32, std::vector<double>(16, 0.0));
    Buffer workspace = workspace_of(shape);
    Statistics got(32), expected(32);
    GroupNormStatisticsArguments arguments{x.data(),
                                           static_cast<const float*>(gamma.data()),
                                           static_cast<const float*>(beta.data()),
                                           1e-5,
                                           got.addresses(),
                                           workspace.data()};
    group_norm_statistics(shape, arguments, nullptr);
    arguments.statistics = expected.addresses();
    reference::group_norm_statistics(shape, arguments, nullptr);
    EXPECT_TRUE(near(got.inverse_deviation, expected.inverse_deviation, 1e-5));
}

TEST_P(GroupNormKernels, GradientSumsAreTheReferences) {
    for (const auto& extents : kGroupShapes) {
        for (const auto& [relu, two] : std::vector<std::array<bool, 2>>{
                 {false, false}, {true, false}, {false, true}, {true, true}}) {
            const GroupNormShape shape = shape_of(extents);
            const Buffer x = image(shape, 0.5), dy0 = image(shape, 0), dy1 = image(shape, 0);
            const Buffer gamma = contents_.normal(DType::f32, shape.channels);
            const Buffer beta = contents_.normal(DType::f32, shape.channels);
            Buffer workspace = workspace_of(shape);
            const std::int64_t count = shape.spans.spans * shape.spans.channels;
            Statistics statistics(count);
            const auto* factors = static_cast<const float*>(gamma.data());
            reference::group_norm_statistics(
                shape,
                {x.data(), factors, static_cast<const float*>(beta.data()), 1e-5,
                 statistics.addresses(), nullptr},
                nullptr);
            Buffer dgamma(DType::f32, shape.channels), dbeta(DType::f32, shape.channels);
            Buffer coefficients(DType::f32, 3 * count);
            Buffer expected_dgamma = dgamma, expected_dbeta = dbeta, expected = coefficients;
            GroupNormGradientArguments arguments{.x = x.data(),
                                                 .dy0 = dy0.data(),
                                                 .dy1 = two ? dy1.data() : nullptr,
                                                 .gamma = factors,
                                                 .statistics = statistics.addresses(),
                                                 .relu = relu,
                                                 .gamma_gradient = dgamma.as<float>(),
                                                 .beta_gradient = dbeta.as<float>(),
                                                 .coefficients = coefficients.as<float>(),
                                                 .workspace = workspace.data()};
            group_norm_gradient_sums(shape, arguments, nullptr);
            arguments.gamma_gradient = expected_dgamma.as<float>();
            arguments.beta_gradient = expected_dbeta.as<float>();
            arguments.coefficients = expected.as<float>();
            reference::group_norm_gradient_sums(shape, arguments, nullptr);
            SCOPED_TRACE(testing::PrintToString(extents));
            const double tolerance = sum_tolerance(shape.spans);
            EXPECT_TRUE(near(dgamma, expected_dgamma, tolerance));
            EXPECT_TRUE(near(dbeta, expected_dbeta, tolerance));
            EXPECT_TRUE(near(coefficients, expected, tolerance));
            EXPECT_TRUE(workspace.guard_is_intact());
        }
    }
}

INSTANTIATE_TEST_SUITE_P(, GroupNormKernels, testing::ValuesIn(kComputeDtypes), dtype_name);

}  // namespace
}  // namespace hpcai::kernels
