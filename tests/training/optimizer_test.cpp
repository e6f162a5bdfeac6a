// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "networks.hpp"

namespace hpcai::training {
namespace {

/// PyTorch's SGD in doubles, one number at a time.
struct NaiveSgd {
    double momentum, weight_decay;
    bool nesterov;

    void step(double rate, double gradient, double& weight, double& velocity) const {
        gradient += weight_decay * weight;
        velocity = momentum * velocity + gradient;
        weight -= rate * (nesterov ? gradient + momentum * velocity : velocity);
    }
};

struct Case {
    double momentum;
    double weight_decay;
    bool nesterov;
    bool decay_on_norm_and_bias;
};

bool decays(graph::ParameterKind kind, const Case& settings) {
    return settings.decay_on_norm_and_bias || kind == graph::ParameterKind::filters ||
           kind == graph::ParameterKind::linear_weight;
}

class OptimizerSteps : public testing::TestWithParam<Case> {
protected:
    static constexpr int kSteps = 5;

    static double rate(int step) { return 0.1 / (1 + step); }

    OptimizerSteps() {
        CounterStream random(1, RandomPurpose::test, 7);
        for (float& value : store_.parameters()) value = static_cast<float>(random.normal());
        for (int step = 0; step < kSteps; ++step) {
            gradients_.emplace_back(store_.parameters().size());
            for (float& value : gradients_.back()) value = static_cast<float>(random.normal());
        }
        for (float& value : store_.statistics()) value = 7;
    }

    config::TrainingConfig settings() const {
        const Case& wanted = GetParam();
        config::TrainingConfig training;
        training.momentum = wanted.momentum;
        training.weight_decay = wanted.weight_decay;
        training.nesterov = wanted.nesterov;
        training.weight_decay_on_norm_and_bias = wanted.decay_on_norm_and_bias;
        return training;
    }

    /// What the naive steps make of the store's parameters.
    std::vector<double> expected() {
        const auto begin = store_.parameters();
        std::vector<double> weights(begin.begin(), begin.end());
        for (std::size_t id = 0; id < store_.ranges().size(); ++id) {
            const Case& wanted = GetParam();
            const NaiveSgd sgd{
                wanted.momentum,
                decays(graph_.parameters()[id].kind, wanted) ? wanted.weight_decay : 0.0,
                wanted.nesterov};
            const graph::Range range = store_.ranges()[id];
            for (std::size_t i = range.begin; i < range.end; ++i) {
                double velocity = 0;
                for (int step = 0; step < kSteps; ++step) {
                    const auto number = static_cast<std::size_t>(step);
                    sgd.step(rate(step), gradients_[number][i], weights[i], velocity);
                }
            }
        }
        return weights;
    }

    graph::Graph graph_ = graph::every_operation();
    std::unique_ptr<device::Device> device_ = device::make_cpu_device({});
    graph::ParameterStore store_{graph_, *device_};
    std::vector<std::vector<float>> gradients_;  // by step
};

INSTANTIATE_TEST_SUITE_P(Settings, OptimizerSteps,
                         testing::Values(Case{0, 0, false, false}, Case{0.9, 0, false, false},
                                         Case{0.9, 0.05, false, false},
                                         Case{0.9, 0.05, false, true}, Case{0.9, 0.05, true, false},
                                         Case{0.5, 0.05, true, true}));

TEST_P(OptimizerSteps, AgreeWithNaiveStepsInDoubles) {
    const std::vector<double> want = expected();
    const Optimizer optimizer(graph_, store_, settings());
    for (int step = 0; step < kSteps; ++step) {
        const std::vector<float>& gradients = gradients_[static_cast<std::size_t>(step)];
        std::copy(gradients.begin(), gradients.end(), store_.gradients().begin());
        optimizer.step(rate(step), *device_, store_);
    }
    for (std::size_t id = 0; id < store_.ranges().size(); ++id) {
        const graph::Range range = store_.ranges()[id];
        for (std::size_t i = range.begin; i < range.end; ++i) {
            // fp32: five additions of numbers of about one
            ASSERT_NEAR(store_.parameters()[i], want[i], 3e-6)
                << graph_.parameters()[id].name << " " << i - range.begin;
        }
    }
    for (const float value : store_.statistics()) ASSERT_EQ(value, 7);
}

TEST(Optimizer, LeavesTheGapsBetweenParametersAtZero) {
    const graph::Graph graph = small_graph(2);  // the last bias has 3 elements
    const auto device = device::make_cpu_device({});
    graph::ParameterStore store(graph, *device);
    initialize(graph, 1, 0, store);
    Optimizer(graph, store, {}).step(0.1, *device, store);
    std::vector<bool> belongs(store.parameters().size());
    for (const graph::Range& range : store.ranges()) {
        for (std::size_t i = range.begin; i < range.end; ++i) belongs[i] = true;
    }
    std::size_t gaps = 0;
    for (std::size_t i = 0; i < belongs.size(); ++i) {
        if (belongs[i]) continue;
        ++gaps;
        EXPECT_EQ(store.parameters()[i], 0) << i;
    }
    EXPECT_GT(gaps, 0U);
}

}  // namespace
}  // namespace hpcai::training
