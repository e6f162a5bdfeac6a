// SPDX-License-Identifier: Apache-2.0
#include <chrono>
#include <functional>
#include <limits>
#include <thread>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <hpcai/training/trainer.hpp>

#include "networks.hpp"
#include "storage/temporary_folder.hpp"

namespace hpcai::training {
namespace {

using storage::error_of;

constexpr std::int64_t kStepsPerEpoch = 4;  // of an epoch
constexpr int kResumedEpochs = 3;

/// Saves a checkpoint after one step, like a run that stops there.
class SaveBehind final : public StepCallback {
public:
    explicit SaveBehind(std::int64_t step) : step_(step) {}
    bool must_read_results(std::int64_t steps_done) const override { return steps_done == step_; }
    void after_results_read(Trainer& trainer, std::int64_t steps_done) override {
        if (steps_done != step_) return;
        trainer.save(saved);
        throw Error(ExitCode::stopped, "stopped");
    }
    Snapshot saved;

private:
    std::int64_t step_;
};

/// Delays the ranks after one step, like writing a checkpoint.
class HoldUpBehind final : public StepCallback {
public:
    static constexpr double kSeconds = 0.5;
    explicit HoldUpBehind(std::int64_t step) : step_(step) {}
    bool must_read_results(std::int64_t steps_done) const override { return steps_done == step_; }
    void after_results_read(Trainer& trainer, std::int64_t steps_done) override {
        if (steps_done != step_) return;
        std::this_thread::sleep_for(std::chrono::duration<double>(kSeconds));
        trainer.save(saved);
    }
    Snapshot saved;

private:
    std::int64_t step_;
};

/// Checks the state on all ranks after resuming from it.
class ExamineBehind final : public StepCallback {
public:
    ExamineBehind(std::int64_t step, std::function<void()> damage)
        : step_(step), damage_(std::move(damage)) {}
    bool must_read_results(std::int64_t steps_done) const override { return steps_done == step_; }
    void after_results_read(Trainer& trainer, std::int64_t steps_done) override {
        if (steps_done != step_) return;
        trainer.check_state();
        ++examined;
        damage_();
        trainer.check_state();
    }
    int examined = 0;

private:
    std::int64_t step_;
    std::function<void()> damage_;
};

class ResumedTraining : public testing::Test {
protected:
    struct Course {
        std::vector<float> parameters, statistics;
        std::vector<double> losses;  // of completed epochs
        bool operator==(const Course&) const = default;
    };

    static config::Config config_of(config::Optimizer optimizer) {
        config::Config config = small_config(kSmallBatch, kResumedEpochs);
        config.training.optimizer = optimizer;
        config.training.schedule = config::Schedule::cosine;
        config.training.learning_rate = 0.02;
        return config;
    }

    struct Rank {
        Rank(const config::Config& configuration, comm::Communicator& self, StepCallback* between)
            : model(configuration, kStepsPerEpoch, self, small_graph(kSmallBatch)),
              trainer({model.config, model.network, kStepsPerEpoch, *model.reducer, nullptr,
                       nullptr, nullptr, between},
                      *model.device, model.store, self) {}
        SmallModel model;
        Trainer trainer;
    };

    static void train(Rank& rank, Course& course) {
        TrainingPosition at = rank.trainer.position();
        ToySource source(kSmallBatch, kStepsPerEpoch);
        for (; at.epoch < kResumedEpochs; ++at.epoch) {
            source.restart();
            for (; at.steps > 0; --at.steps) source.next();
            course.losses.push_back(
                rank.trainer.train_epoch(at.epoch, source, ignore_step).mean_loss);
        }
        course.parameters = rank.model.store.read(rank.model.store.parameters());
        course.statistics = rank.model.store.read(rank.model.store.statistics());
    }

    Course stopped_at(const config::Config& config, std::int64_t step) {
        Course course;
        SaveBehind stop(step);
        Rank first(config, *self_, &stop);
        error_of(ExitCode::stopped, [&] { train(first, course); });
        Rank second(config, *self_, nullptr);
        second.trainer.restore(stop.saved);
        second.trainer.broadcast_parameters();
        train(second, course);
        return course;
    }

    std::unique_ptr<comm::Communicator> self_ = comm::make_self_communicator();
};

TEST_F(ResumedTraining, EndsWithTheBitsOfUninterruptedTraining) {
    for (const auto optimizer :
         {config::Optimizer::sgd, config::Optimizer::lars, config::Optimizer::lamb,
          config::Optimizer::adam, config::Optimizer::adamw, config::Optimizer::adagrad}) {
        const config::Config config = config_of(optimizer);
        Course whole;
        Rank never_stopped(config, *self_, nullptr);
        train(never_stopped, whole);
        for (const std::int64_t step : {1, 4, 7, 12}) {
            const Course stopped = stopped_at(config, step);
            EXPECT_TRUE(stopped == whole) << static_cast<int>(optimizer) << " at " << step;
        }
    }
}

/// The clock of the steps is also paused.
TEST_F(ResumedTraining, CountsNoPauseAfterTheLastStepOfAnEpoch) {
    HoldUpBehind hold(kStepsPerEpoch);
    Rank rank(config_of(config::Optimizer::sgd), *self_, &hold);
    ToySource source(kSmallBatch, kStepsPerEpoch);
    source.restart();
    EXPECT_LT(rank.trainer.train_epoch(0, source, ignore_step).seconds, HoldUpBehind::kSeconds);
    constexpr std::size_t kSecondsOfEpoch = 3;
    EXPECT_LT(hold.saved.numbers("progress", 8)[kSecondsOfEpoch], HoldUpBehind::kSeconds);
    HoldUpBehind within(kStepsPerEpoch - 1);
    Rank other(config_of(config::Optimizer::sgd), *self_, &within);
    source.restart();
    EXPECT_GE(other.trainer.train_epoch(0, source, ignore_step).seconds, HoldUpBehind::kSeconds);
}

TEST_F(ResumedTraining, IsNotSavedWithParametersThatAreNotFinite) {
    graph::ParameterStore* store = nullptr;
    ExamineBehind examine(2, [&] {
        std::vector<float> values = store->read(store->parameters());
        values.front() = std::numeric_limits<float>::quiet_NaN();  // the last value may be padding
        store->write(values, store->parameters());
    });
    Rank rank(config_of(config::Optimizer::sgd), *self_, &examine);
    store = &rank.model.store;
    Course course;
    const std::string message = error_of(ExitCode::internal, [&] { train(rank, course); });
    EXPECT_EQ(examine.examined, 1);
    EXPECT_THAT(message, testing::HasSubstr("is not finite after step 2; try"));
}

TEST_F(ResumedTraining, RejectsAnImpossiblePosition) {
    const config::Config config = config_of(config::Optimizer::adam);
    Rank rank(config, *self_, nullptr);
    Snapshot saved("rank-0.safetensors");
    rank.trainer.save(saved);
    const auto refusal = [&](const std::string& name, std::vector<double> values) {
        Snapshot wrong = saved;
        wrong.put_numbers(name, std::move(values));
        return error_of(ExitCode::data, [&] { rank.trainer.restore(wrong); });
    };
    EXPECT_EQ(refusal("progress", {5, 0, 4, 0, 0, 0, 0, 0}),
              "'rank-0.safetensors': progress: step 5 does not match 4 steps of epoch 0");
    EXPECT_THAT(refusal("progress", {1e300, 0, 0, 0, 0, 0, 0, 0}),
                testing::HasSubstr("progress: expected a whole number from 0 to 12"));
    EXPECT_THAT(refusal("step_scalars", {0, 0, 1, 0, 0, 0, 0}),
                testing::HasSubstr("expected a loss scale"));
    EXPECT_THAT(refusal("step_scalars", {0, 1, 1, -1, 0, 0, 0}),
                testing::HasSubstr("step_scalars: expected a whole number"));
    Snapshot small = saved;
    small.put("optimizer_state.1", {1, 2});
    EXPECT_THAT(error_of(ExitCode::data, [&] { rank.trainer.restore(small); }),
                testing::HasSubstr("optimizer_state.1: expected"));
    rank.trainer.restore(saved);
    Course course;
    train(rank, course);
    EXPECT_EQ(course.losses.size(), 3U);
}

}  // namespace
}  // namespace hpcai::training
