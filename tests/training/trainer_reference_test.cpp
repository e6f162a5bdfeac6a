// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <hpcai/reference/naive_network.hpp>

#include "networks.hpp"
#include "support/largest_error.hpp"

/// Whole steps of the Trainer in double. Operations, optimizer and schedule have separate tests;
/// this one checks their combination in the Trainer.
namespace hpcai::training {
namespace {

constexpr int kReferenceSteps = 4;
constexpr double kRate = 0.05;  // of the first step
constexpr double kMomentum = 0.9;

using Tensors = std::vector<naive::Tensor>;

std::map<std::string, naive::Tensor> inputs_of(const data::Batch& batch) {
    naive::Tensor images(batch.images.shape), labels(batch.labels.shape);
    const auto pixels = batch.images.as<std::uint8_t>();
    const auto classes = batch.labels.as<std::int32_t>();
    images.values.assign(pixels.begin(), pixels.end());
    labels.values.assign(classes.begin(), classes.end());
    return {{"images", images}, {"labels", labels}};
}

Tensors parameters_of(const graph::Graph& graph, graph::ParameterStore& store) {
    Tensors all;
    for (std::size_t id = 0; id < graph.parameters().size(); ++id) {
        const auto from = store.parameter(static_cast<graph::ParameterId>(id));
        all.emplace_back(graph.parameters()[id].shape);
        all.back().values.assign(from.begin(), from.end());
    }
    return all;
}

double mean(const std::vector<double>& values) {
    double sum = 0;
    for (const double value : values) sum += value;
    return sum / static_cast<double>(values.size());
}

/// PyTorch's SGD with momentum on the gradient of the batch's mean loss. The rate decreases
/// linearly from kRate to 0 after kSteps.
class NaiveTrainer {
public:
    NaiveTrainer(const graph::Graph& graph, Tensors start)
        : network_(graph), parameters_(std::move(start)), velocities_(parameters_) {
        for (naive::Tensor& velocity : velocities_) velocity = naive::Tensor(velocity.shape);
    }

    /// Returns the mean loss before the step.
    double step(const data::Batch& batch) {
        const auto result = network_.run(inputs_of(batch), parameters_, 1.0 / kSmallBatch);
        const double rate = kRate * (1 - static_cast<double>(done_++) / kReferenceSteps);
        for (std::size_t id = 0; id < parameters_.size(); ++id) {
            for (std::size_t i = 0; i < parameters_[id].values.size(); ++i) {
                double& velocity = velocities_[id].values[i];
                velocity = kMomentum * velocity + result.gradients[id].values[i];
                parameters_[id].values[i] -= rate * velocity;
            }
        }
        return mean(result.losses);
    }
    const Tensors& parameters() const { return parameters_; }

private:
    naive::Network network_;
    Tensors parameters_, velocities_;
    int done_ = 0;
};

config::Config falling_rate() {
    config::Config config = small_config(kSmallBatch, 1);
    config.training.learning_rate = kRate;
    config.training.final_learning_rate = 0;
    config.training.schedule = config::Schedule::polynomial;
    config.training.schedule_power = 1;
    config.training.momentum = kMomentum;
    config.training.weight_decay = 0;
    return config;
}

TEST(TrainerSteps, AreThoseOfTheNaiveNetworkAndSgdInDoublesEachAtItsOwnRate) {
    const auto self = comm::make_self_communicator();
    const graph::Graph graph = small_graph(kSmallBatch);
    SmallModel model(falling_rate(), kReferenceSteps, *self, graph);
    NaiveTrainer naive(graph, parameters_of(graph, model.store));
    ToySource source(kSmallBatch, kReferenceSteps), same(kSmallBatch, kReferenceSteps);
    // fp32: parameters up to 1 are rounded once per step (6e-8), their gradients of 0.1 in sums
    tests::LargestError parameters("parameters after every step of the trainer, fp32", 6e-7);
    tests::LargestError losses("loss of every step of the trainer, fp32", 1e-7);
    model.trainer->train_epoch(0, source, [&](const StepReport& report) {
        losses.add(std::abs(report.loss - naive.step(same.next())));
        const Tensors got = parameters_of(graph, model.store);
        for (std::size_t id = 0; id < got.size(); ++id) {
            for (std::size_t i = 0; i < got[id].values.size(); ++i) {
                parameters.add(std::abs(got[id].values[i] - naive.parameters()[id].values[i]),
                               graph.parameters()[id].name);
            }
        }
    });
}

}  // namespace
}  // namespace hpcai::training
