// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <new>
#include <vector>

#include <gtest/gtest.h>

#include <hpcai/comm/collectives.hpp>
#include <hpcai/training/predict.hpp>
#include <hpcai/training/trainer.hpp>

#include "networks.hpp"
#include "storage/temporary_folder.hpp"

namespace hpcai::training {
namespace {

using storage::error_of;

/// A group of one rank.
class TrainerOfOneRank : public testing::Test {
protected:
    SmallModel make(int epochs, std::int64_t steps, double learning_rate = 0.05) {
        config::Config config = small_config(kSmallBatch, epochs);
        config.training.learning_rate = learning_rate;
        return SmallModel(config, steps, *self_, small_graph(kSmallBatch));
    }

    std::unique_ptr<comm::Communicator> self_ = comm::make_self_communicator();
};

TEST_F(TrainerOfOneRank, LearnsAToySetAndReportsEveryStep) {
    constexpr int kSteps = 12;
    SmallModel model = make(4, kSteps);
    ToySource source(kSmallBatch, kSteps);
    std::vector<StepReport> reports;
    std::vector<EpochReport> epochs;
    for (int epoch = 0; epoch < 4; ++epoch) {
        source.restart();
        epochs.push_back(model.trainer->train_epoch(
            epoch, source, [&](const StepReport& report) { reports.push_back(report); }));
    }
    EXPECT_NEAR(reports.front().loss, std::log(3.0), 0.3) << "the loss of an untrained model";
    EXPECT_LT(epochs.back().mean_loss, 0.4);
    EXPECT_GT(epochs.back().mean_loss, 0.291);  // the entropy of the smoothed target
    EXPECT_LT(epochs.back().mean_loss, 0.5 * epochs.front().mean_loss);
    ASSERT_EQ(reports.size(), 48U);
    for (std::size_t i = 0; i < reports.size(); ++i) {
        EXPECT_EQ(reports[i].step, static_cast<std::int64_t>(i) + 1);
        EXPECT_EQ(reports[i].steps, 48);
        EXPECT_EQ(reports[i].epoch, static_cast<int>(i) / kSteps);
        EXPECT_EQ(reports[i].samples, kSmallBatch);
    }
    for (const EpochReport& epoch : epochs) {
        EXPECT_EQ(epoch.steps, kSteps);
        EXPECT_EQ(epoch.samples, kSteps * kSmallBatch);
        EXPECT_GT(epoch.seconds, 0);
    }
    double sum = 0;
    for (std::size_t i = 0; i < kSteps; ++i) sum += reports[i].loss;
    EXPECT_NEAR(epochs.front().mean_loss, sum / kSteps, 1e-9);
}

TEST_F(TrainerOfOneRank, TakesTheSameStepsEveryTime) {
    std::vector<std::vector<float>> results;
    for (int run = 0; run < 2; ++run) {
        SmallModel model = make(1, 3);
        ToySource source(kSmallBatch, 3);
        model.trainer->train_epoch(0, source, ignore_step);
        results.emplace_back(model.store.parameters().begin(), model.store.parameters().end());
    }
    EXPECT_EQ(results[0], results[1]);
}

TEST_F(TrainerOfOneRank, FollowsTheScheduleOverAllEpochs) {
    // Rate 0 from the second epoch on: its steps change nothing.
    config::Config config = small_config(kSmallBatch, 2);
    config.training.schedule = config::Schedule::step;
    config.training.schedule_epochs = {1};
    config.training.schedule_factor = 0;
    SmallModel model(config, 2, *self_, small_graph(kSmallBatch));
    ToySource source(kSmallBatch, 2);
    std::vector<float> weights(model.store.parameters().begin(), model.store.parameters().end());
    for (const int epoch : {0, 1}) {
        source.restart();
        model.trainer->train_epoch(epoch, source, ignore_step);
        const std::vector<float> now(model.store.parameters().begin(),
                                     model.store.parameters().end());
        EXPECT_EQ(now == weights, epoch == 1);
        weights = now;
    }
}

TEST_F(TrainerOfOneRank, LeavesTheWeightsAloneInAnEpochWithoutBatches) {
    SmallModel model = make(1, 0);
    const std::vector<float> before(model.store.parameters().begin(),
                                    model.store.parameters().end());
    ToySource source(kSmallBatch, 0);
    const EpochReport report = model.trainer->train_epoch(0, source, ignore_step);
    EXPECT_EQ(report.steps, 0);
    EXPECT_EQ(report.samples, 0);
    EXPECT_EQ(report.mean_loss, 0);
    EXPECT_EQ(std::vector<float>(model.store.parameters().begin(), model.store.parameters().end()),
              before);
}

TEST_F(TrainerOfOneRank, ReportsADivergedTraining) {
    SmallModel model = make(1, 40, 1e30);
    ToySource source(kSmallBatch, 40);
    std::int64_t steps = 0;
    const std::string message = error_of(ExitCode::internal, [&] {
        model.trainer->train_epoch(0, source, [&](const StepReport&) { ++steps; });
    });
    EXPECT_NE(message.find("diverged"), std::string::npos) << message;
    EXPECT_NE(message.find("training.learning_rate"), std::string::npos) << message;
    EXPECT_LT(steps, 40);
}

TEST_F(TrainerOfOneRank, ReportsWhatTheLastStepLost) {
    SmallModel model = make(1, 2);
    ToySource source(kSmallBatch, 2);
    const std::string message = error_of(ExitCode::internal, [&] {
        model.trainer->train_epoch(0, source, [&](const StepReport& step) {
            if (step.step == step.steps) model.store.parameter(1)[3] = INFINITY;
        });
    });
    EXPECT_NE(message.find("diverged: bn0.weight is not finite after epoch 1"), std::string::npos)
        << message;
}

TEST_F(TrainerOfOneRank, ThrowsWhatTheSourceThrowsAndTakesNoStepWithIt) {
    SmallModel model = make(1, 5);
    ToySource source(kSmallBatch, 5);
    source.set_failure(2, [] { throw Error(ExitCode::data, "a.jpg: is cut"); });
    std::int64_t steps = 0;
    std::vector<float> weights;
    const std::string message = error_of(ExitCode::data, [&] {
        model.trainer->train_epoch(0, source, [&](const StepReport&) {
            ++steps;
            weights.assign(model.store.parameters().begin(), model.store.parameters().end());
        });
    });
    EXPECT_EQ(message, "a.jpg: is cut");
    EXPECT_EQ(steps, 2);
    EXPECT_EQ(std::vector<float>(model.store.parameters().begin(), model.store.parameters().end()),
              weights);
}

TEST(TrainerOfTwoRanks, CanCommunicateAfterTheSourceOfOneRankFailed) {
    comm::run_as_threads(2, [](comm::Communicator& ranks) {
        SmallModel model(small_config(2 * kSmallBatch, 1), 5, ranks, small_graph(kSmallBatch));
        ToySource source(kSmallBatch, 5);
        if (ranks.rank() == 1) source.set_failure(2, [] { throw std::bad_alloc(); });
        EXPECT_THROW(model.trainer->train_epoch(0, source, ignore_step), comm::AgreedError);
        std::int64_t ranks_left = 1;
        ranks.all_reduce_sum(std::span(&ranks_left, 1));
        EXPECT_EQ(ranks_left, 2);
    });
}

/// Predictions of the toy set by an inference network of batch 4.
class Predict : public TrainerOfOneRank {
protected:
    Predictions predict_with(SmallModel& model, std::int64_t last_samples) {
        graph::Network network(small_graph(4), *model.device, model.store,
                               {device::Mode::inference, tensor::DType::f32});
        ToySource source(4, 3);
        source.set_last_samples(last_samples);
        return predict(network, source, kClasses);
    }
};

TEST_F(Predict, GivesEverySampleOnceInOrderAndLeavesPaddingOut) {
    SmallModel model = make(1, 1);
    const Predictions all = predict_with(model, 4);
    ASSERT_EQ(all.labels.size(), 12U);
    ASSERT_EQ(all.outputs.size(), 36U);
    for (std::size_t row = 0; row < 12; ++row) {
        double sum = 0;
        for (std::size_t c = 0; c < 3; ++c) sum += all.outputs[row * 3 + c];
        EXPECT_NEAR(sum, 1, 1e-5) << row;
    }
    const Predictions fewer = predict_with(model, 1);
    EXPECT_EQ(fewer.labels, std::vector<std::int32_t>(all.labels.begin(), all.labels.begin() + 9));
    EXPECT_EQ(fewer.outputs, std::vector<float>(all.outputs.begin(), all.outputs.begin() + 27));
    EXPECT_EQ(predict_with(model, 0).labels.size(), 8U);
}

TEST_F(Predict, UsesTheWeightsTrainedSince) {
    SmallModel model = make(3, 12);
    graph::Network network(small_graph(4), *model.device, model.store,
                           {device::Mode::inference, tensor::DType::f32});
    const auto correct = [&] {
        ToySource source(4, 12);
        const Predictions all = predict(network, source, kClasses);
        int count = 0;
        for (std::size_t row = 0; row < all.labels.size(); ++row) {
            const auto first = all.outputs.begin() + static_cast<std::ptrdiff_t>(row * 3);
            count += std::max_element(first, first + 3) - first == all.labels[row];
        }
        return count;
    };
    EXPECT_LT(correct(), 30);
    for (int epoch = 0; epoch < 3; ++epoch) {
        ToySource source(kSmallBatch, 12);
        model.trainer->train_epoch(epoch, source, ignore_step);
    }
    model.trainer->average_statistics();
    EXPECT_GT(correct(), 42);  // of 48
}

TEST_F(Predict, GatherOfOneRankChangesNothing) {
    const Predictions mine{{0.25f, 0.75f}, {1}};
    const Predictions all = gather(*self_, mine);
    EXPECT_EQ(all.outputs, mine.outputs);
    EXPECT_EQ(all.labels, mine.labels);
}

}  // namespace
}  // namespace hpcai::training
