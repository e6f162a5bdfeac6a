// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include <gtest/gtest.h>

#include <hpcai/training/step_log.hpp>

namespace hpcai::training {
namespace {

/// A PhaseClock with clocks that the test sets.
class Phases : public testing::Test {
protected:
    void spend(double seconds, double of_it_in_communication = 0) {
        now_ += seconds;
        communication_ += of_it_in_communication;
    }

    double now_ = 100, communication_ = 7;
    PhaseClock clock_{[this] { return communication_; }};
};

TEST_F(Phases, AddUpToTheStep) {
    clock_.begin(now_);
    spend(1);  // other
    clock_.enter(Phase::input_wait, now_);
    spend(2);
    clock_.enter(Phase::forward, now_);
    spend(4);
    clock_.enter(Phase::backward, now_);
    spend(8);
    clock_.enter(Phase::optimizer, now_);
    spend(16);
    const PhaseSeconds step = clock_.end(now_);
    EXPECT_EQ(step.other, 1);
    EXPECT_EQ(step.input_wait, 2);
    EXPECT_EQ(step.forward, 4);
    EXPECT_EQ(step.backward, 8);
    EXPECT_EQ(step.communication, 0);
    EXPECT_EQ(step.optimizer, 16);
}

TEST_F(Phases, AreWithoutTheCommunicationInside) {
    clock_.begin(now_);
    clock_.enter(Phase::backward, now_);
    spend(8, 3);
    clock_.enter(Phase::communication, now_);
    spend(4, 4);
    clock_.enter(Phase::communication, now_);
    spend(2);  // not communication
    const PhaseSeconds step = clock_.end(now_);
    EXPECT_EQ(step.backward, 5);
    EXPECT_EQ(step.communication, 3 + 4 + 2);
    EXPECT_EQ(step.forward + step.optimizer + step.other + step.input_wait, 0);
}

TEST_F(Phases, AreEnteredAgainByEachMicroBatch) {
    clock_.begin(now_);
    for (const double seconds : {1, 2}) {
        clock_.enter(Phase::forward, now_);
        spend(seconds);
        clock_.enter(Phase::backward, now_);
        spend(10 * seconds);
    }
    const PhaseSeconds step = clock_.end(now_);
    EXPECT_EQ(step.forward, 3);
    EXPECT_EQ(step.backward, 30);
    EXPECT_EQ(clock_.readings(), 6);
}

TEST_F(Phases, IncludeNeitherTheStepBeforeNorThePauseAfterIt) {
    clock_.begin(now_);
    clock_.enter(Phase::forward, now_);
    spend(5, 1);
    clock_.end(now_);
    spend(1000, 10);
    clock_.begin(now_);
    clock_.enter(Phase::forward, now_);
    spend(2);
    const PhaseSeconds step = clock_.end(now_);
    EXPECT_EQ(step.forward, 2);
    EXPECT_EQ(step.communication, 0);
    EXPECT_EQ(step.other, 0);
}

// Two clocks are read one after the other.
TEST_F(Phases, AreNeverNegative) {
    clock_.begin(now_);
    clock_.enter(Phase::backward, now_);
    spend(1, 1.0000001);
    PhaseSeconds step = clock_.end(now_);
    EXPECT_EQ(step.backward, 0);
    EXPECT_EQ(step.communication, 1);
}

}  // namespace
}  // namespace hpcai::training
