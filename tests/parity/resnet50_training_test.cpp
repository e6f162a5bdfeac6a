// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <hpcai/comm/communicator.hpp>
#include <hpcai/training/predict.hpp>
#include <hpcai/training/trainer.hpp>

#include "fingerprint.hpp"
#include "fixed_source.hpp"
#include "model.hpp"
#include "reference_file.hpp"
#include "support/largest_error.hpp"

/// Steps of the Trainer with the whole ResNet-50 against torch.optim.SGD and torchvision in
/// float64.
namespace hpcai::parity {
namespace {

constexpr std::int64_t kSide = 64;
constexpr int kBatches = 3;  // that the training goes round
constexpr int kEpochs = 10;

/// Half a cosine after a warm-up of two of the ten epochs; everything else is the default.
config::Config make_config(double peak_rate) {
    config::Config config;
    config.workload.epochs = kEpochs;
    config.training.batch_size = static_cast<int>(kBatch);
    config.training.learning_rate_batch = static_cast<int>(kBatch);
    config.training.learning_rate = peak_rate;
    config.training.schedule = config::Schedule::cosine;
    config.training.warmup_epochs = 2;
    config.training.label_smoothing = kSmoothing;
    return config;
}

/// A model in training on the batches of the formula.
class Training {
public:
    Training(const Variant& variant, double peak_rate)
        : model(variant, kSide),
          config_(make_config(peak_rate)),
          self_(comm::make_self_communicator()),
          trainer_({config_, model.network, kBatches}, *model.device, model.store, *self_),
          source_(kSide, kBatches) {}

    /// The losses of the epoch's steps.
    std::vector<double> train_epoch(int epoch) {
        std::vector<double> losses;
        source_.restart();
        trainer_.train_epoch(epoch, source_, [&](const training::StepReport& report) {
            losses.push_back(report.loss);
        });
        return losses;
    }

    Model model;

private:
    config::Config config_;
    std::unique_ptr<comm::Communicator> self_;
    training::Trainer trainer_;
    FixedSource source_;
};

class ResNet50ThreeSteps : public testing::TestWithParam<Variant> {
protected:
    void SetUp() override {
        Model& model = training_.model;
        start_.assign(model.store.parameters().begin(), model.store.parameters().end());
        losses_ = training_.train_epoch(0);
    }

    std::string title(const std::string& number) const {
        return fmt::format("ResNet-50 {} {}, fp32", GetParam().title(), number);
    }

    static constexpr double kPeakRate = 0.03;
    const ReferenceFile file_{GetParam().stem() + ".safetensors"};
    Training training_{GetParam(), kPeakRate};
    std::vector<float> start_;
    std::vector<double> losses_;
};

TEST_P(ResNet50ThreeSteps, LeaveVelocitiesParametersAndStatisticsOfPyTorchInDouble) {
    Model& model = training_.model;
    tests::LargestError losses(title("losses of three steps"), 1e-6);
    losses.add(relative_distance(losses_, file_.read("step_losses")));

    tests::LargestError velocities(title("velocities after three steps"), 4e-5);
    tests::LargestError movements(title("movement of the parameters in three steps"), 3e-5);
    for (std::size_t id = 0; id < model.graph.parameters().size(); ++id) {
        const std::string& name = model.graph.parameters()[id].name;
        const auto velocity = Fingerprint::of(model.part(model.store.momentum(), id));
        velocities.add(velocity.distance(file_.fingerprint("velocity/" + name)) /
                           file_.yardstick("velocity/", name),
                       name);
        std::vector<double> movement = model.part(model.store.parameters(), id);
        const double rounding = Fingerprint::of(movement).length() * 0x1p-23;
        const std::vector<double> start = model.part(start_, id);
        for (std::size_t i = 0; i < start.size(); ++i) movement[i] -= start[i];
        const Fingerprint want = file_.fingerprint("moved/" + name);
        const double distance = Fingerprint::of(movement).distance(want);
        // Three steps round a parameter to fp32 three times, however little it moves.
        movements.add(std::max(distance - rounding, 0.0) / std::max(want.length(), 1e-300), name);
    }

    tests::LargestError statistics(title("running statistics after three steps"), 2e-6);
    for (std::size_t index = 0; index < model.graph.statistics().size(); ++index) {
        const std::string& name = model.graph.statistics()[index].name;
        const auto number = static_cast<std::int32_t>(index);
        const auto compare = [&](const std::string& which, std::span<const float> values) {
            const Fingerprint want = file_.fingerprint("statistics/" + name + which);
            const auto got = Fingerprint::of(std::vector<double>(values.begin(), values.end()));
            statistics.add(got.distance(want) / want.length(), name + which);
        };
        compare(".running_mean", model.store.running_mean(number));
        compare(".running_var", model.store.running_variance(number));
    }
}

TEST_P(ResNet50ThreeSteps, AreFollowedByThePredictionsOfPyTorchsEvalMode) {
    Model& model = training_.model;
    graph::Network network(model.graph, *model.device, model.store, {device::Mode::inference});
    FixedSource unseen(kSide, 1, kBatches);
    const auto predictions = training::predict(network, unseen, kClasses);
    EXPECT_EQ(predictions.labels, labels(kBatches));
    tests::LargestError error(title("logits in inference"), 2e-6);
    error.add(relative_distance(centred_logits(predictions.probabilities),
                                file_.read("inference_logits")));
}

std::vector<Variant> versions() {
    return {{"v1"}, {"v1_5"}};
}

INSTANTIATE_TEST_SUITE_P(Of, ResNet50ThreeSteps, testing::ValuesIn(versions()),
                         [](const auto& test) { return std::string(test.param.version); });

}  // namespace
}  // namespace hpcai::parity
