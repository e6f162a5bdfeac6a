// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <hpcai/training/step_runner.hpp>

#include "device/device_rows.hpp"
#include "support/largest_error.hpp"
#include "support/optimizer_steps.hpp"
#include "support/reference_json.hpp"
#include "training/networks.hpp"

namespace hpcai::training {
namespace {

device::OptimizerSteps steps_of(const graph::Graph& graph, graph::ParameterStore& store,
                                const config::TrainingConfig& training, device::Device& device) {
    graph::Network network(graph, device, store, {});
    device::OptimizerTensors tensors = optimizer_tensors(network, store);
    device::Optimizer optimizer = plan_optimizer(network, store, training);
    // owned by the network, which is destroyed
    for (auto& range : optimizer.ranges) range.working_copy = nullptr;
    return {device, std::move(optimizer), tensors};
}

/// PyTorch's SGD in double, one number at a time.
struct NaiveSgd {
    double momentum, weight_decay;
    bool nesterov;

    void step(double rate, double gradient, double& weight, double& velocity) const {
        gradient += weight_decay * weight;
        velocity = momentum * velocity + gradient;
        weight -= rate * (nesterov ? gradient + momentum * velocity : velocity);
    }
};

struct UpdateCase {
    double momentum;
    double weight_decay;
    bool nesterov;
    bool decay_on_norm_and_bias;
};

bool decays(graph::ParameterKind kind, const UpdateCase& settings) {
    return settings.decay_on_norm_and_bias || kind == graph::ParameterKind::filters ||
           kind == graph::ParameterKind::linear_weight;
}

class OptimizerSteps : public testing::TestWithParam<UpdateCase> {
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
        const UpdateCase& wanted = GetParam();
        config::TrainingConfig training;
        training.momentum = wanted.momentum;
        training.weight_decay = wanted.weight_decay;
        training.nesterov = wanted.nesterov;
        training.weight_decay_on_norm_and_bias = wanted.decay_on_norm_and_bias;
        return training;
    }

    /// Returns the store's parameters after the naive steps.
    std::vector<double> expected() {
        const auto begin = store_.parameters();
        std::vector<double> weights(begin.begin(), begin.end());
        for (std::size_t id = 0; id < store_.ranges().size(); ++id) {
            const UpdateCase& wanted = GetParam();
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

INSTANTIATE_TEST_SUITE_P(
    Settings, OptimizerSteps,
    testing::Values(UpdateCase{0, 0, false, false}, UpdateCase{0.9, 0, false, false},
                    UpdateCase{0.9, 0.05, false, false}, UpdateCase{0.9, 0.05, false, true},
                    UpdateCase{0.9, 0.05, true, false}, UpdateCase{0.5, 0.05, true, true}));

TEST_P(OptimizerSteps, AgreeWithNaiveStepsInDoubles) {
    const std::vector<double> want = expected();
    device::OptimizerSteps steps = steps_of(graph_, store_, settings(), *device_);
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

/// Returns a graph with a parameter of each kind, with the names of tests/data/reference/sgd.json.
graph::Graph one_of_each_kind() {
    graph::GraphMaker make;
    const graph::ValueId pixels = make.graph.add_input("images", {1, 2, 2, 2}, tensor::DType::u8);
    const graph::ValueId x = make.norm("norm", make.convolution("conv", pixels, 3));
    return make.finish(x, 2);
}

config::TrainingConfig settings_of(const nlohmann::json& given) {
    static const std::map<std::string, config::Optimizer> kOptimizers{
        {"sgd", config::Optimizer::sgd},     {"lars", config::Optimizer::lars},
        {"lamb", config::Optimizer::lamb},   {"adam", config::Optimizer::adam},
        {"adamw", config::Optimizer::adamw}, {"adagrad", config::Optimizer::adagrad}};
    config::TrainingConfig training;
    training.optimizer = kOptimizers.at(given.value("optimizer", "sgd"));
    training.momentum = given.value("momentum", training.momentum);
    training.nesterov = given.value("nesterov", training.nesterov);
    training.beta1 = given.value("beta1", training.beta1);
    training.beta2 = given.value("beta2", training.beta2);
    training.trust_coefficient = given.value("trust_coefficient", training.trust_coefficient);
    training.weight_decay = given.at("weight_decay");
    training.weight_decay_on_norm_and_bias = given.value("weight_decay_on_norm_and_bias", false);
    if (given.contains("epsilon")) training.epsilon = given["epsilon"].get<double>();
    if (given.contains("momentum_correction")) {
        training.momentum_correction = given["momentum_correction"].get<bool>();
    }
    return training;
}

std::vector<device::DeviceRow> fp32_rows() {
    std::vector<device::DeviceRow> rows = device::device_rows();
    std::erase_if(rows, [](const device::DeviceRow& row) {
        return row.compute != tensor::DType::f32 || row.tf32;
    });
    return rows;
}

/// Repeats another program's steps in float64.
class ReferenceSteps : public testing::TestWithParam<device::DeviceRow> {
protected:
    using Values = std::map<std::string, std::vector<double>>;  // by parameter

    void start(const nlohmann::json& settings, const Values& parameters) {
        const config::TrainingConfig training = settings_of(settings);
        store_.emplace(graph_, *device_, config::optimizer_states(training.optimizer));
        steps_.emplace(steps_of(graph_, *store_, training, *device_));
        place(store_->parameters(), parameters);
        name_ = settings.dump();
    }

    void step(double rate, const Values& gradients) {
        place(store_->gradients(), gradients);
        steps_->step(rate);
    }

    void place(std::span<float> buffer, const Values& values) {
        std::vector<float> all(buffer.size());
        for (std::size_t id = 0; id < graph_.parameters().size(); ++id) {
            const std::vector<double>& from = values.at(graph_.parameters()[id].name);
            const auto [begin, end] = store_->ranges()[id];
            ASSERT_EQ(from.size(), end - begin);
            std::ranges::transform(from, all.begin() + static_cast<std::ptrdiff_t>(begin),
                                   [](double value) { return static_cast<float>(value); });
        }
        store_->write(all, buffer);
    }

    void compare(std::span<const float> buffer, const nlohmann::json& expected,
                 tests::LargestError& error, std::size_t step) const {
        const std::vector<float> all = store_->read(buffer);
        for (std::size_t id = 0; id < graph_.parameters().size(); ++id) {
            const std::string& name = graph_.parameters()[id].name;
            const std::vector<double> want = expected.at(name);
            const auto [begin, end] = store_->ranges()[id];
            ASSERT_EQ(want.size(), end - begin);
            for (std::size_t i = 0; i < want.size(); ++i) {
                error.add(std::abs(all[begin + i] - want[i]),
                          fmt::format("{}, step {}, {} {}", name_, step, name, i));
            }
        }
    }

    graph::Graph graph_ = one_of_each_kind();
    std::unique_ptr<device::Device> device_ = GetParam().make();
    std::optional<graph::ParameterStore> store_;
    std::optional<device::OptimizerSteps> steps_;
    std::string name_;
};

INSTANTIATE_TEST_SUITE_P(Devices, ReferenceSteps, testing::ValuesIn(fp32_rows()),
                         [](const auto& test) { return to_string(test.param); });

TEST_P(ReferenceSteps, OfTorchOptimSgdAreTakenOneByOne) {
    const nlohmann::json reference = tests::read_reference_json("sgd.json");
    // fp32: 12 steps of a few roundings each, of numbers up to 1.8 (1.2e-7)
    tests::LargestError parameters("SGD parameters after every step, fp32", 8e-7);
    tests::LargestError velocities("SGD velocities after every step, fp32", 8e-7);
    for (const nlohmann::json& wanted : reference["cases"]) {
        start(wanted, reference["start"]);
        ASSERT_EQ(wanted["after"].size(), 12U);
        for (std::size_t number = 0; number < wanted["after"].size(); ++number) {
            step(reference["rates"][number], reference["gradients"][number]);
            const nlohmann::json& after = wanted["after"][number];
            compare(store_->parameters(), after, parameters, number);
            if (after.contains("velocity")) {
                compare(store_->state(0), after["velocity"], velocities, number);
            }
        }
    }
    EXPECT_EQ(reference["cases"].size(), 9U);
}

TEST_P(ReferenceSteps, OfEveryOptimizerAreTakenOneByOne) {
    const nlohmann::json reference = tests::read_reference_json("optimizers.json");
    // fp32: rounding as for SGD, and division by the root of a mean of squares near 0
    tests::LargestError parameters("parameters after steps of every optimizer, fp32", 2e-6);
    tests::LargestError states("states of every optimizer after steps, fp32", 2e-6);
    std::map<std::string, int> cases;
    for (const nlohmann::json& wanted : reference["cases"]) {
        start(wanted["settings"], wanted["start"]);
        std::size_t number = 0;
        for (const nlohmann::json& after : wanted["after"]) {
            for (; number <= after["step"].get<std::size_t>(); ++number) {
                step(reference["rates"][number], reference["gradients"][number]);
            }
            compare(store_->parameters(), after["parameters"], parameters, number);
            ASSERT_EQ(static_cast<int>(after["states"].size()), store_->states());
            for (int state = 0; state < store_->states(); ++state) {
                compare(store_->state(state), after["states"][static_cast<std::size_t>(state)],
                        states, number);
            }
        }
        EXPECT_EQ(number, 12U);
        ++cases[wanted["settings"]["optimizer"].get<std::string>()];
    }
    EXPECT_EQ(
        cases,
        (std::map<std::string, int>{
            {"sgd", 6}, {"lars", 13}, {"lamb", 7}, {"adam", 6}, {"adamw", 6}, {"adagrad", 6}}));
}

TEST(PlanOptimizer, LeavesTheGapsBetweenParametersAtZero) {
    const graph::Graph graph = small_graph(2);  // the last bias has 3 elements
    const auto device = device::make_cpu_device({});
    graph::ParameterStore store(graph, *device);
    initialize(graph, 1, 0, store);
    steps_of(graph, store, {}, *device).step(0.1);
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
