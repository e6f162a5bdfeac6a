// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <hpcai/device/cpu_device.hpp>
#include <hpcai/training/trainer.hpp>

#include "networks.hpp"

namespace hpcai::training {
namespace {

constexpr int kLoggedSteps = 5;

double sum_of(const PhaseSeconds& phases) {
    return phases.input_wait + phases.forward + phases.backward + phases.communication +
           phases.optimizer + phases.other;
}

/// A group of one rank that trains for two epochs, on a clock that advances by one at each reading.
class LoggedTraining : public testing::Test {
protected:
    void train(StepLogOptions options, std::int64_t failing_batch = -1) {
        options.now = [this] { return now_ += 1; };
        log_.emplace(std::move(options), *model_.device);
        Trainer trainer(
            {model_.config, model_.network, kLoggedSteps, *model_.reducer, nullptr, &*log_},
            *model_.device, model_.store, *self_);
        ToySource source(kSmallBatch, kLoggedSteps);
        if (failing_batch >= 0) {
            source.set_failure(failing_batch, [] { throw Error(ExitCode::data, "a bad sample"); });
        }
        for (const int epoch : {0, 1}) {
            source.restart();
            now_ += 1000;  // a pause
            trainer.train_epoch(epoch, source, ignore_step);
        }
    }

    double now_ = 0;
    std::unique_ptr<comm::Communicator> self_ = comm::make_self_communicator();
    SmallModel model_{small_config(kSmallBatch, 2), kLoggedSteps, *self_, small_graph(kSmallBatch)};
    std::optional<StepLog> log_;
};

TEST_F(LoggedTraining, IsRestoredFromTwoParts) {
    train({});
    const std::vector<StepRecord> steps = log_->steps();
    const std::vector<double> seconds = log_->step_seconds();
    const std::int64_t first = 6, all = std::ssize(steps);
    Snapshot older, newer;
    log_->save(newer, first);
    log_->truncate(first);
    log_->save(older);
    EXPECT_THROW(log_->restore(newer, all), Error) << "the first steps are missing";
    log_->restore(older, first);
    log_->restore(newer, all, first);
    ASSERT_EQ(log_->steps().size(), steps.size());
    for (std::size_t step = 0; step < steps.size(); ++step) {
        EXPECT_EQ(log_->steps()[step].end_seconds, steps[step].end_seconds);
        EXPECT_EQ(log_->steps()[step].loss, steps[step].loss);
    }
    EXPECT_EQ(log_->step_seconds(), seconds);
}

TEST_F(LoggedTraining, HasEveryStepInOrder) {
    train({});
    const std::vector<StepRecord>& steps = log_->steps();
    ASSERT_EQ(steps.size(), 2U * kLoggedSteps);
    for (std::size_t i = 0; i < steps.size(); ++i) {
        EXPECT_EQ(steps[i].step, static_cast<std::int64_t>(i));
        EXPECT_EQ(steps[i].epoch, static_cast<int>(i) / kLoggedSteps);
        EXPECT_EQ(steps[i].samples, kSmallBatch);
        EXPECT_DOUBLE_EQ(steps[i].learning_rate, 0.05);
        EXPECT_GT(steps[i].loss, 0);
    }
}

TEST_F(LoggedTraining, HasPhasesThatAddUpToTheStepWithoutThePauses) {
    train({});
    const std::vector<StepRecord>& steps = log_->steps();
    ASSERT_EQ(log_->step_seconds().size(), steps.size());
    for (std::size_t i = 0; i < steps.size(); ++i) {
        EXPECT_EQ(sum_of(steps[i].phases), log_->step_seconds()[i]) << i;
        // Each clock reading after a phase is the beginning of the next phase.
        EXPECT_EQ(steps[i].phases.input_wait, 1);
        EXPECT_EQ(steps[i].phases.forward, 1);
        EXPECT_EQ(steps[i].phases.optimizer, 1);
        EXPECT_EQ(log_->step_seconds()[i], 7) << i;
        if (i > 0 && i != kLoggedSteps) {
            EXPECT_EQ(steps[i].end_seconds - steps[i - 1].end_seconds, 7);
        }
    }
    EXPECT_GT(steps[kLoggedSteps].end_seconds - steps[kLoggedSteps - 1].end_seconds, 1000);
}

TEST_F(LoggedTraining, LeavesPhasesUnknownUnlessRequested) {
    train({.measure_phases = false});
    for (const StepRecord& step : log_->steps()) EXPECT_TRUE(std::isnan(sum_of(step.phases)));
    EXPECT_EQ(log_->readings(), 0);
    EXPECT_EQ(log_->step_seconds().size(), 2U * kLoggedSteps);
}

TEST_F(LoggedTraining, KeepsTheStepsBeforeAFailure) {
    EXPECT_THROW(train({}, 3), Error);
    ASSERT_EQ(log_->steps().size(), 3U);
    EXPECT_EQ(log_->steps().back().step, 2);
}

TEST_F(LoggedTraining, TracesTheStepsAfterTheThird) {
    train({.trace_steps = 2});
    std::vector<std::string> steps;
    double begin = 0, end = 0;
    for (const TraceEvent& event : log_->trace().events()) {
        EXPECT_LE(event.begin_seconds, event.end_seconds) << event.name;
        if (!event.name.starts_with("step ")) continue;
        steps.push_back(event.name);
        if (begin == 0) begin = event.begin_seconds;
        end = event.end_seconds;
    }
    EXPECT_EQ(steps, (std::vector<std::string>{"step 3", "step 4"}));
    int phases = 0, kernels = 0;
    for (const TraceEvent& event : log_->trace().events()) {
        EXPECT_GE(event.begin_seconds, begin) << event.name;
        EXPECT_LE(event.end_seconds, end) << event.name;
        phases += event.name == "backward";
        kernels += event.lane == TraceLane::kernels;
    }
    EXPECT_EQ(phases, 2);
    EXPECT_EQ(kernels, 2 * static_cast<int>(model_.network.calls().size()));
}

}  // namespace
}  // namespace hpcai::training
