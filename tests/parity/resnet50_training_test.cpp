// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <memory>
#include <span>
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
#include "support/reference_json.hpp"

/// Steps of the Trainer with the whole ResNet-50 compared with torch.optim.SGD and torchvision in
/// float64.
namespace hpcai::parity {
namespace {

constexpr std::int64_t kSide = 64;
constexpr int kBatches = 3;  // that training repeats
constexpr int kEpochs = 10;

/// Returns half a cosine after a warm-up of two of the ten epochs; other settings are defaults.
config::Config make_config(double peak_rate, int loss_scale) {
    config::Config config;
    config.run.loss_steps = 1;
    config.training.loss_scale = loss_scale;
    config.workload.epochs = kEpochs;
    config.training.batch_size = static_cast<int>(kBatch);
    config.training.learning_rate_batch = static_cast<int>(kBatch);
    config.training.learning_rate = peak_rate;
    config.training.schedule = config::Schedule::cosine;
    config.training.warmup_epochs = 2;
    config.training.label_smoothing = kSmoothing;
    return config;
}

double peak_rate(Kind kind) {
    return kind == Kind::open ? 0.03 : 0.002;
}

/// A model in training on the batches of the formula.
class Training {
public:
    Training(const Variant& variant, double peak_rate)
        : model(variant, kSide),
          config_(make_config(peak_rate, loss_scale_of(variant))),
          self_(comm::make_self_communicator()),
          reducer_(comm::make_mpi_reducer(*self_)),
          trainer_({config_, model.network, kBatches, *reducer_}, *model.device, model.store,
                   *self_),
          source_(kSide, kBatches) {}

    /// Returns the losses of the epoch's steps.
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
    std::unique_ptr<comm::GradientReducer> reducer_;
    training::Trainer trainer_;
    FixedSource source_;
};

class ResNet50ThreeSteps : public testing::TestWithParam<Variant> {
protected:
    void SetUp() override {
        graph::ParameterStore& store = training_.model.store;
        start_ = store.read(store.parameters());
        losses_ = training_.train_epoch(0);
        end_ = store.read(store.parameters());
    }

    /// Returns the error divided by the parameter's movement, minus the effect of three roundings
    /// of the parameter to fp32.
    double error_of_movement(std::size_t id, const Fingerprint& want) const {
        std::vector<double> movement = training_.model.part(end_, id);
        const double rounding = Fingerprint::of(movement).length() * 0x1p-23;
        const std::vector<double> start = training_.model.part(start_, id);
        for (std::size_t i = 0; i < start.size(); ++i) movement[i] -= start[i];
        const double distance = Fingerprint::of(movement).distance(want);
        return std::max(distance - rounding, 0.0) / std::max(want.length(), 1e-300);
    }

    const ReferenceFile file_{GetParam().stem() + ".safetensors"};
    Training training_{GetParam(), peak_rate(Kind::open)};
    std::vector<float> start_, end_;  // parameters
    std::vector<double> losses_;
};

TEST_P(ResNet50ThreeSteps, LeaveVelocitiesAndParametersOfPyTorchInDouble) {
    const std::string version = GetParam().title();
    tests::LargestError losses(fmt::format("ResNet-50 {} losses of three steps, fp32", version),
                               1e-6);
    losses.add(relative_distance(losses_, file_.read("step_losses")));

    tests::LargestError velocities(
        fmt::format("ResNet-50 {} velocities after three steps, fp32", version), 4e-5);
    tests::LargestError movements(
        fmt::format("ResNet-50 {} movement of the parameters in three steps, fp32", version), 3e-5);
    Model& model = training_.model;
    const std::vector<float> momentum = model.store.read(model.store.state(0));
    for (std::size_t id = 0; id < model.graph.parameters().size(); ++id) {
        const std::string& name = model.graph.parameters()[id].name;
        const auto velocity = Fingerprint::of(model.part(momentum, id));
        const double distance = velocity.distance(file_.fingerprint("velocity/" + name));
        velocities.add(distance / file_.yardstick("velocity/", name), name);
        movements.add(error_of_movement(id, file_.fingerprint("moved/" + name)), name);
    }
}

TEST_P(ResNet50ThreeSteps, LeaveRunningStatisticsAndPredictionsOfPyTorchInDouble) {
    const std::string version = GetParam().title();
    tests::LargestError statistics(
        fmt::format("ResNet-50 {} running statistics after three steps, fp32", version), 2e-6);
    Model& model = training_.model;
    const auto compare = [&](const std::string& name, std::span<const float> part) {
        const std::vector<float> values = model.store.read(part);
        const Fingerprint want = file_.fingerprint("statistics/" + name);
        const auto got = Fingerprint::of(std::vector<double>(values.begin(), values.end()));
        statistics.add(got.distance(want) / want.length(), name);
    };
    for (std::size_t index = 0; index < model.graph.statistics().size(); ++index) {
        const std::string& name = model.graph.statistics()[index].name;
        const auto number = static_cast<std::int32_t>(index);
        compare(name + ".running_mean", model.store.running_mean(number));
        compare(name + ".running_var", model.store.running_variance(number));
    }

    graph::Network network(model.graph, *model.device, model.store, {device::Mode::inference});
    FixedSource unseen(kSide, 1, kBatches);
    const auto predictions = training::predict(network, unseen, kClasses);
    EXPECT_EQ(predictions.labels, labels(kBatches));
    tests::LargestError logits(fmt::format("ResNet-50 {} logits in inference, fp32", version),
                               2e-6);
    logits.add(
        relative_distance(centred_logits(predictions.outputs), file_.read("inference_logits")));
}

/// Returns both versions in fp32.
std::vector<Variant> versions() {
    std::vector<Variant> all;
    for (const device::DeviceRow& row : rows()) {
        if (row.compute != tensor::DType::f32) continue;
        for (const std::string_view version : {"v1", "v1_5"}) {
            all.push_back({version, Kind::open, row});
        }
    }
    return all;
}

INSTANTIATE_TEST_SUITE_P(Of, ResNet50ThreeSteps, testing::ValuesIn(versions()),
                         [](const auto& test) { return test.param.name(); });

/// Returns the allowed distance of the loss curves, divided by their length. PyTorch's own curves
/// differ from float64 by (open) 1e-6 in fp32 and 2e-3 under bf16's autocast, and by (ordinary)
/// 0.03 and 0.02: there, the first ReLU that switches separates two training runs in any precision.
double band_of(const Variant& variant) {
    if (variant.kind == Kind::ordinary) return 0.08;
    return variant.row.compute == tensor::DType::f32 ? 4e-6 : 8e-3;
}

class ResNet50Curve : public testing::TestWithParam<Variant> {};

TEST_P(ResNet50Curve, FollowsPyTorchInDoubleForThirtySteps) {
    const Variant variant = GetParam();
    const auto file = tests::read_reference_json("resnet50.json");
    const auto want = file["curves"][name_of(variant.kind)]["float64"].get<std::vector<double>>();
    Training training(variant, peak_rate(variant.kind));
    std::vector<double> got;
    for (int epoch = 0; epoch < kEpochs; ++epoch) {
        const std::vector<double> losses = training.train_epoch(epoch);
        got.insert(got.end(), losses.begin(), losses.end());
    }
    tests::LargestError error(fmt::format("ResNet-50 v1.5 {} losses of thirty steps, {}",
                                          name_of(variant.kind), name_of(variant.row.compute)),
                              band_of(variant));
    error.add(relative_distance(got, want));
    EXPECT_LT(want.back(), 0.25 * want.front()) << "there is something to learn";
}

std::vector<Variant> curves() {
    std::vector<Variant> all;
    for (const device::DeviceRow& row : rows()) {
        for (const Kind kind : {Kind::open, Kind::ordinary}) all.push_back({"v1_5", kind, row});
    }
    return all;
}

INSTANTIATE_TEST_SUITE_P(Of, ResNet50Curve, testing::ValuesIn(curves()),
                         [](const auto& test) { return test.param.name(); });

}  // namespace
}  // namespace hpcai::parity
