// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "kernels/buffer.hpp"
#include "kernels/cross_entropy.hpp"
#include "kernels/host_numbers.hpp"

namespace hpcai::kernels {
namespace reference {

inline double target(const SoftmaxShape& shape, std::int64_t index, std::int32_t label) {
    return shape.label_smoothing / static_cast<double>(shape.classes) +
           (index == label ? 1 - shape.label_smoothing : 0);
}

inline void softmax_cross_entropy(const SoftmaxShape& shape, const SoftmaxArguments& arguments,
                                  Stream) {
    for (std::int64_t row = 0; row < shape.rows; ++row) {
        const float* logits = arguments.logits + row * shape.classes;
        const double highest = *std::max_element(logits, logits + shape.classes);
        double sum = 0, loss = 0;
        for (std::int64_t i = 0; i < shape.classes; ++i) sum += std::exp(logits[i] - highest);
        for (std::int64_t i = 0; i < shape.classes; ++i) {
            const double logarithm = logits[i] - highest - std::log(sum);
            arguments.probabilities[row * shape.classes + i] =
                static_cast<float>(std::exp(logarithm));
            loss -= target(shape, i, arguments.labels[row]) * logarithm;
        }
        arguments.losses[row] = arguments.labels[row] < 0 ? 0 : static_cast<float>(loss);
    }
}

inline void softmax_cross_entropy_gradient(const SoftmaxShape& shape,
                                           const SoftmaxGradientArguments& arguments, Stream) {
    for (std::int64_t i = 0; i < shape.rows * shape.classes; ++i) {
        const std::int32_t label = arguments.labels[i / shape.classes];
        const double excess = arguments.probabilities[i] - target(shape, i % shape.classes, label);
        put(arguments.dtype, arguments.gradient, i, label < 0 ? 0 : *arguments.loss_scale * excess);
    }
}

inline void accumulate_loss(const float* losses, std::int64_t rows, double* total, Stream) {
    double sum = 0;
    for (std::int64_t row = 0; row < rows; ++row) sum += losses[row];
    *total += sum;
}

}  // namespace reference

namespace {

struct Rows {
    SoftmaxShape shape;
    Buffer logits, labels;
};

class SoftmaxKernels : public ForEachDtype {
protected:
    Contents contents_{8};

    /// Every third row except the first is padding.
    Rows rows(std::int64_t count, std::int64_t classes, double smoothing) {
        Rows rows{{count, classes, smoothing},
                  contents_.normal(DType::f32, count * classes),
                  contents_.whole(DType::s32, count, static_cast<std::uint32_t>(classes))};
        for (std::int64_t i = 0; i < rows.logits.count(); ++i) {
            rows.logits.set(i, 5 * rows.logits[i]);
        }
        for (std::int64_t i = 2; i < count; i += 3) rows.labels.set(i, -1);
        return rows;
    }
};

const std::vector<std::array<std::int64_t, 2>> kSizes{{1, 1},   {2, 2},    {5, 10},
                                                      {3, 255}, {4, 1000}, {7, 257}};

TEST_P(SoftmaxKernels, AgreeWithTwinAndNaiveOperation) {
    float loss_scale = 128;
    for (const auto& [count, classes] : kSizes) {
        for (const double smoothing : {0.0, 0.1}) {
            Rows in = rows(count, classes, smoothing);
            Buffer softmax(DType::f32, count * classes), losses(DType::f32, count);
            Buffer gradient(GetParam(), count * classes), twin = gradient;
            const auto* labels = in.labels.as<std::int32_t>();
            softmax_cross_entropy(
                in.shape, {in.logits.as<float>(), labels, softmax.as<float>(), losses.as<float>()},
                nullptr);
            SoftmaxGradientArguments of{softmax.as<float>(), labels, &loss_scale, GetParam(),
                                        gradient.data()};
            softmax_cross_entropy_gradient(in.shape, of, nullptr);
            of.gradient = twin.data();
            reference::softmax_cross_entropy_gradient(in.shape, of, nullptr);

            naive::Problem problem{.operation =
                                       ops::SoftmaxCrossEntropy{{count, classes}, smoothing}};
            problem.inputs = {in.logits.tensor({count, classes}), in.labels.tensor({count})};
            problem.loss_scale = loss_scale;
            const auto expected = naive::solve(problem);
            const double tolerance = tolerance_of(GetParam());
            EXPECT_TRUE(near(softmax, expected.output, 1e-7));
            EXPECT_TRUE(near(losses, expected.losses, 1e-7));
            EXPECT_TRUE(near(gradient, twin, loss_scale * 1e-6 + tolerance));
            EXPECT_TRUE(near(gradient, expected.input_gradients[0], loss_scale * 1e-6 + tolerance));
        }
    }
}

TEST_P(SoftmaxKernels, PaddingHasNoGradientWhateverItsLogitsAre) {
    float loss_scale = 1024;
    Rows in = rows(3, 20, 0.1);
    in.logits.set(2 * 20 + 4, NAN);
    Buffer softmax(DType::f32, 60), losses(DType::f32, 3), gradient(GetParam(), 60);
    const auto* labels = in.labels.as<std::int32_t>();
    softmax_cross_entropy(in.shape,
                          {in.logits.as<float>(), labels, softmax.as<float>(), losses.as<float>()},
                          nullptr);
    softmax_cross_entropy_gradient(
        in.shape, {softmax.as<float>(), labels, &loss_scale, GetParam(), gradient.data()}, nullptr);
    EXPECT_EQ(losses[2], 0);
    for (std::int64_t i = 40; i < 60; ++i) EXPECT_EQ(gradient[i], 0);
}

TEST(SoftmaxKernel, AgreesWithItsTwin) {
    Contents contents(9);
    const SoftmaxShape shape{6, 300, 0.1};
    Buffer logits = contents.normal(DType::f32, 1800), labels = contents.whole(DType::s32, 6, 300);
    labels.set(3, -1);
    Buffer softmax(DType::f32, 1800), losses(DType::f32, 6);
    Buffer twin_softmax = softmax, twin_losses = losses;
    SoftmaxArguments of{logits.as<float>(), labels.as<std::int32_t>(), softmax.as<float>(),
                        losses.as<float>()};
    softmax_cross_entropy(shape, of, nullptr);
    of.probabilities = twin_softmax.as<float>();
    of.losses = twin_losses.as<float>();
    reference::softmax_cross_entropy(shape, of, nullptr);
    EXPECT_TRUE(near(softmax, twin_softmax, 1e-7));
    EXPECT_TRUE(near(losses, twin_losses, 1e-7));
}

TEST(SoftmaxKernel, LargeLogitsOverflowNothing) {
    Buffer logits(DType::f32, std::vector<double>{1e4, -1e4, 1e4, 3e38});
    Buffer labels(DType::s32, std::vector<double>{0, 1});
    Buffer softmax(DType::f32, 4), losses(DType::f32, 2);
    softmax_cross_entropy(
        {2, 2, 0},
        {logits.as<float>(), labels.as<std::int32_t>(), softmax.as<float>(), losses.as<float>()},
        nullptr);
    for (const int i : {0, 3}) EXPECT_EQ(softmax[i], 1);
    for (const int i : {1, 2}) EXPECT_EQ(softmax[i], 0);
    for (const int i : {0, 1}) EXPECT_EQ(losses[i], 0);
}

TEST(SoftmaxKernel, ANanInARowShowsInItsLoss) {
    Buffer logits(DType::f32, std::vector<double>{1, NAN, 2, 1, 3, 2});
    Buffer labels(DType::s32, std::vector<double>{0, 1});
    Buffer softmax(DType::f32, 6), losses(DType::f32, 2);
    softmax_cross_entropy(
        {2, 3, 0},
        {logits.as<float>(), labels.as<std::int32_t>(), softmax.as<float>(), losses.as<float>()},
        nullptr);
    EXPECT_TRUE(std::isnan(losses[0]));
    EXPECT_TRUE(std::isfinite(losses[1]));
}

TEST(AccumulateLoss, AddsTheSumOfTheRows) {
    Contents contents(10);
    for (const std::int64_t rows : {1, 31, 256, 1000}) {
        Buffer losses = contents.normal(DType::f32, rows);
        double total = 3, expected = 3;
        accumulate_loss(losses.as<float>(), rows, &total, nullptr);
        reference::accumulate_loss(losses.as<float>(), rows, &expected, nullptr);
        EXPECT_NEAR(total, expected, 1e-12);
        accumulate_loss(losses.as<float>(), rows, &total, nullptr);
        EXPECT_NEAR(total, 2 * expected - 3, 1e-12);
    }
}

INSTANTIATE_TEST_SUITE_P(, SoftmaxKernels, testing::ValuesIn(kComputeDtypes), dtype_name);

}  // namespace
}  // namespace hpcai::kernels
