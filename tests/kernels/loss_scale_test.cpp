// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "kernels/buffer.hpp"
#include "kernels/optimizer.hpp"

namespace hpcai::kernels {
namespace reference {

inline void check_finite(const float* gradients, std::int64_t count, ops::StepScalars* numbers,
                         Stream) {
    const bool all =
        std::all_of(gradients, gradients + count, [](float value) { return std::isfinite(value); });
    if (!all) numbers->finite = 0;
}

inline void update_loss_scale(const ops::LossScalePolicy& policy, ops::StepScalars* numbers,
                              Stream) {
    const bool good = numbers->finite != 0;
    numbers->good_steps = good ? numbers->good_steps + 1 : 0;
    numbers->skipped_steps += good ? 0 : 1;
    numbers->taken_steps += good ? 1 : 0;
    if (policy.dynamic && !good) {
        numbers->loss_scale = std::max(numbers->loss_scale / 2, policy.min_scale);
    } else if (policy.dynamic && numbers->good_steps >= policy.good_steps_to_double) {
        numbers->good_steps = 0;
        if (numbers->loss_scale * 2 <= policy.max_scale) numbers->loss_scale *= 2;
    }
    numbers->gradient_factor = policy.loss_weight / numbers->loss_scale;
    numbers->finite = 1;
}

}  // namespace reference

namespace {

bool finite(Buffer& gradients) {
    ops::StepScalars numbers, twin;
    check_finite(gradients.as<float>(), gradients.count(), &numbers, nullptr);
    reference::check_finite(gradients.as<float>(), gradients.count(), &twin, nullptr);
    EXPECT_EQ(numbers.finite, twin.finite);
    return numbers.finite != 0;
}

TEST(CheckFinite, FindsOneBadNumberAnywhere) {
    constexpr std::int64_t kMaxCount =
        2 * 1056 * 256 * 16 + 3;  // more than the grid processes at once
    for (const std::int64_t count : std::vector<std::int64_t>{1, 2, 3, 4, 5, 1023, kMaxCount}) {
        Buffer gradients(DType::f32, std::vector<double>(static_cast<std::size_t>(count), 1.5));
        gradients.set(count / 2, std::numeric_limits<float>::max());
        gradients.set(count / 3, -std::numeric_limits<float>::denorm_min());
        EXPECT_TRUE(finite(gradients)) << count;
        for (const std::int64_t at : {std::int64_t{0}, count / 3, count / 2, count - 1}) {
            for (const double bad : {INFINITY, -INFINITY, NAN}) {
                const double kept = gradients[at];
                gradients.set(at, bad);
                EXPECT_FALSE(finite(gradients)) << count << " at " << at;
                gradients.set(at, kept);
            }
        }
    }
}

TEST(CheckFinite, NeverSetsTheFlag) {
    Buffer gradients(DType::f32, std::vector<double>(100, 1.0));
    ops::StepScalars numbers{.finite = 0};
    check_finite(gradients.as<float>(), 100, &numbers, nullptr);
    EXPECT_EQ(numbers.finite, 0u);
}

/// The kernel and its naive reference in the same steps.
class LossScale : public testing::Test {
protected:
    ops::StepScalars numbers_{.learning_rate = 0.5f, .loss_scale = 1024};

    void step(const ops::LossScalePolicy& policy, bool good) {
        numbers_.finite = good ? 1 : 0;
        ops::StepScalars twin = numbers_;
        update_loss_scale(policy, &numbers_, nullptr);
        reference::update_loss_scale(policy, &twin, nullptr);
        EXPECT_EQ(numbers_.loss_scale, twin.loss_scale);
        EXPECT_EQ(numbers_.gradient_factor, twin.gradient_factor);
        EXPECT_EQ(numbers_.good_steps, twin.good_steps);
        EXPECT_EQ(numbers_.skipped_steps, twin.skipped_steps);
        EXPECT_EQ(numbers_.taken_steps, twin.taken_steps);
        EXPECT_EQ(numbers_.finite, 1u);
        EXPECT_EQ(numbers_.learning_rate, 0.5f);
        EXPECT_EQ(numbers_.gradient_factor, policy.loss_weight / numbers_.loss_scale);
    }
};

TEST_F(LossScale, DoublesAfterEnoughGoodStepsInARow) {
    const ops::LossScalePolicy policy{
        .dynamic = true, .good_steps_to_double = 3, .loss_weight = 0.25f};
    for (const bool good : {true, true, false, true, true}) step(policy, good);
    EXPECT_EQ(numbers_.loss_scale, 512);
    EXPECT_EQ(numbers_.skipped_steps, 1u);
    step(policy, true);
    EXPECT_EQ(numbers_.loss_scale, 1024);
    EXPECT_EQ(numbers_.good_steps, 0u);
}

TEST_F(LossScale, StaysWithinItsBounds) {
    const ops::LossScalePolicy policy{
        .dynamic = true, .good_steps_to_double = 1, .min_scale = 300, .max_scale = 3000};
    for (int i = 0; i < 3; ++i) step(policy, true);
    EXPECT_EQ(numbers_.loss_scale, 2048);
    for (int i = 0; i < 5; ++i) step(policy, false);
    EXPECT_EQ(numbers_.loss_scale, 300);
    EXPECT_EQ(numbers_.skipped_steps, 5u);
}

TEST_F(LossScale, StaticNeverMoves) {
    const ops::LossScalePolicy policy{.good_steps_to_double = 1};
    for (const bool good : {true, true, false, true}) step(policy, good);
    EXPECT_EQ(numbers_.loss_scale, 1024);
    EXPECT_EQ(numbers_.good_steps, 1u);
    EXPECT_EQ(numbers_.skipped_steps, 1u);
}

}  // namespace
}  // namespace hpcai::kernels
