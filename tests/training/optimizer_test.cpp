// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "networks.hpp"
#include "support/largest_error.hpp"
#include "support/reference_json.hpp"
#include "support/sgd_step.hpp"

namespace hpcai::training {
namespace {

device::SgdSteps sgd_steps(const graph::Graph& graph, graph::ParameterStore& store,
                           const config::TrainingConfig& training, device::Device& device) {
    const graph::Network network(graph, device, store, {});
    return {device,
            plan_sgd(network, store, training),
            {store.parameters(), store.gradients(), store.momentum(), nullptr}};
}

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
    device::SgdSteps steps = sgd_steps(graph_, store_, settings(), *device_);
    for (int step = 0; step < kSteps; ++step) {
        const std::vector<float>& gradients = gradients_[static_cast<std::size_t>(step)];
        std::copy(gradients.begin(), gradients.end(), store_.gradients().begin());
        steps.step(rate(step));
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

/// A parameter of each kind, with the names of tests/data/reference/sgd.json.
graph::Graph one_of_each_kind() {
    graph::GraphMaker make;
    const graph::ValueId pixels = make.graph.add_input("images", {1, 2, 2, 2}, tensor::DType::u8);
    const graph::ValueId x = make.norm("norm", make.convolution("conv", pixels, 3));
    return make.finish(x, 2);
}

/// Takes the steps of sgd.json that torch.optim.SGD took in float64.
class TorchSgd : public testing::Test {
protected:
    using Values = std::map<std::string, std::vector<double>>;  // by parameter

    void start(const nlohmann::json& settings) {
        config::TrainingConfig training;
        training.momentum = settings["momentum"];
        training.nesterov = settings["nesterov"];
        training.weight_decay = settings["weight_decay"];
        training.weight_decay_on_norm_and_bias = settings["weight_decay_on_norm_and_bias"];
        steps_.emplace(sgd_steps(graph_, store_, training, *device_));
        place(store_.parameters(), reference_["start"].get<Values>());
        std::ranges::fill(store_.momentum(), 0.0F);
        name_ = fmt::format("momentum {}, nesterov {}, decay {}, everywhere {}", training.momentum,
                            training.nesterov, training.weight_decay,
                            training.weight_decay_on_norm_and_bias);
    }

    void step(std::size_t number) {
        place(store_.gradients(), reference_["gradients"][number].get<Values>());
        steps_->step(reference_["rates"][number]);
    }

    void place(std::span<float> buffer, const Values& values) const {
        for (std::size_t id = 0; id < graph_.parameters().size(); ++id) {
            const std::vector<double>& from = values.at(graph_.parameters()[id].name);
            ASSERT_EQ(from.size(), store_.ranges()[id].end - store_.ranges()[id].begin);
            for (std::size_t i = 0; i < from.size(); ++i) {
                buffer[store_.ranges()[id].begin + i] = static_cast<float>(from[i]);
            }
        }
    }

    void compare(std::span<const float> buffer, const nlohmann::json& expected,
                 tests::LargestError& error, std::size_t step) const {
        for (std::size_t id = 0; id < graph_.parameters().size(); ++id) {
            const std::string& name = graph_.parameters()[id].name;
            const std::vector<double> want = expected[name];
            ASSERT_EQ(want.size(), store_.ranges()[id].end - store_.ranges()[id].begin);
            for (std::size_t i = 0; i < want.size(); ++i) {
                const double got = buffer[store_.ranges()[id].begin + i];
                error.add(std::abs(got - want[i]),
                          fmt::format("{}, step {}, {} {}", name_, step, name, i));
            }
        }
    }

    const nlohmann::json reference_ = tests::read_reference_json("sgd.json");
    graph::Graph graph_ = one_of_each_kind();
    std::unique_ptr<device::Device> device_ = device::make_cpu_device({});
    graph::ParameterStore store_{graph_, *device_};
    std::optional<device::SgdSteps> steps_;
    std::string name_;
};

TEST_F(TorchSgd, AgreesWithTorchOptimSgdAfterEveryStep) {
    // fp32: 12 steps of a few roundings each, of numbers up to 1.8 (1.2e-7)
    tests::LargestError parameters("SGD parameters after every step, fp32", 8e-7);
    tests::LargestError velocities("SGD velocities after every step, fp32", 8e-7);
    for (const nlohmann::json& wanted : reference_["cases"]) {
        start(wanted);
        for (std::size_t number = 0; number < wanted["after"].size(); ++number) {
            step(number);
            const nlohmann::json& after = wanted["after"][number];
            compare(store_.parameters(), after, parameters, number);
            if (after.contains("velocity")) {
                compare(store_.momentum(), after["velocity"], velocities, number);
            }
        }
    }
}

TEST_F(TorchSgd, IsComparedInEveryCombinationOverTwelveSteps) {
    std::map<std::string, int> combinations;
    for (const nlohmann::json& wanted : reference_["cases"]) {
        EXPECT_EQ(wanted["after"].size(), 12U);
        start(wanted);
        ++combinations[name_];
    }
    EXPECT_EQ(combinations.size(), 9U);
}

TEST(PlanSgd, LeavesTheGapsBetweenParametersAtZero) {
    const graph::Graph graph = small_graph(2);  // the last bias has 3 elements
    const auto device = device::make_cpu_device({});
    graph::ParameterStore store(graph, *device);
    initialize(graph, 1, 0, store);
    sgd_steps(graph, store, {}, *device).step(0.1);
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
