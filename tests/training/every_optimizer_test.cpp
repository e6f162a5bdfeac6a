// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "device/device_rows.hpp"
#include "training/networks.hpp"

/// The Trainer with every optimizer.
namespace hpcai::training {
namespace {

constexpr std::int64_t kSteps = 12;
constexpr int kEpochs = 4;

struct Case {
    config::Optimizer optimizer;
    double learning_rate;
};
const std::vector<Case> kCases{
    {config::Optimizer::sgd, 0.05},   {config::Optimizer::lars, 0.2},
    {config::Optimizer::lamb, 0.05},  {config::Optimizer::adam, 0.01},
    {config::Optimizer::adamw, 0.01}, {config::Optimizer::adagrad, 0.05},
};

class EveryOptimizer : public testing::TestWithParam<device::DeviceRow> {
protected:
    struct Course {
        std::vector<double> losses;  // by epoch
        std::vector<float> parameters;
    };

    Course train(const Case& one, std::unique_ptr<device::Device> device) const {
        config::Config config = small_config(kSmallBatch, kEpochs);
        config.training.optimizer = one.optimizer;
        config.training.trust_coefficient =
            0.1;  // with 0.001, biases (without a trust ratio) would diverge
        config.training.learning_rate = one.learning_rate;
        SmallModel model(config, kSteps, *self_, small_graph(kSmallBatch), std::move(device),
                         GetParam().compute);
        ToySource source(kSmallBatch, kSteps);
        Course course;
        for (int epoch = 0; epoch < kEpochs; ++epoch) {
            source.restart();
            course.losses.push_back(
                model.trainer->train_epoch(epoch, source, [](const StepReport&) {}).mean_loss);
        }
        course.parameters = model.store.read(model.store.parameters());
        return course;
    }

    std::unique_ptr<comm::Communicator> self_ = comm::make_self_communicator();
};

TEST_P(EveryOptimizer, LearnsAToySet) {
    for (const Case& one : kCases) {
        const Course course = train(one, GetParam().make());
        EXPECT_LT(course.losses.back(), 0.5 * std::log(3.0)) << static_cast<int>(one.optimizer);
        EXPECT_LT(course.losses.back(), 0.7 * course.losses.front())
            << static_cast<int>(one.optimizer);
    }
}

TEST_P(EveryOptimizer, LeavesTheSameBitsAgain) {
    if (!GetParam().make()->determinism().is_repeatable) return;
    for (const Case& one : kCases) {
        const Course first = train(one, GetParam().make()), second = train(one, GetParam().make());
        EXPECT_EQ(first.parameters, second.parameters) << static_cast<int>(one.optimizer);
    }
}

INSTANTIATE_TEST_SUITE_P(Devices, EveryOptimizer, testing::ValuesIn(device::device_rows()),
                         [](const auto& test) { return to_string(test.param); });

}  // namespace
}  // namespace hpcai::training
