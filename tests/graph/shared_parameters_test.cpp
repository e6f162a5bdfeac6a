// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>
#include <string>

#include <gtest/gtest.h>

#include "graph/graphs.hpp"
#include "support/network_runner.hpp"

namespace hpcai::graph {
namespace {

/// Convolutions in sequence, with the same filters or with different ones.
Graph chain(int readers, bool shares) {
    GraphMaker make;
    ValueId x = make.relu("relu", make.convolution("conv", make.images({2, 6, 6, 3}), 8, 3));
    ParameterId filters = -1;
    for (int reader = 0; reader < readers; ++reader) {
        const std::string name = "reader" + std::to_string(reader);
        if (reader == 0 || !shares) {
            filters =
                make.graph.add_parameter({name + ".weight", {8, 3, 3, 8}, ParameterKind::filters});
        }
        x = make.graph.add_node(name, ops::Convolution{make.shape(x), 8, 3, 1, 1}, {x}, {filters});
    }
    return make.finish(x, 3);
}

/// Returns how many calls of the backward pass report each parameter's gradient as final.
std::map<ParameterId, int> completions(const Network& network) {
    std::map<ParameterId, int> counts;
    for (const KernelCall& call : network.calls()) {
        for (const ParameterId parameter : call.final_gradients) ++counts[parameter];
    }
    return counts;
}

void expect_sum_of_gradients(int readers) {
    const Graph together = chain(readers, true), apart = chain(readers, false);
    const Inputs inputs = random_inputs(together);
    Tensors shared = random_parameters(together);
    // Keeps the magnitude of numbers from layer to layer.
    for (double& value : shared[1].values) value /= std::sqrt(2.0);
    Tensors separate = shared;
    separate.insert(separate.begin() + 2, static_cast<std::size_t>(readers - 1), shared[1]);
    NetworkRunner one(together), other(apart);
    one.set_parameters(shared);
    other.set_parameters(separate);
    const naive::NetworkResult got = one.step(inputs), want = other.step(inputs);
    EXPECT_LT(relative_distance(got.probabilities, want.probabilities), 1e-6);
    std::vector<double> sum(want.gradients[1].values.size(), 0.0);
    for (int reader = 0; reader < readers; ++reader) {
        const auto& part = want.gradients[static_cast<std::size_t>(1 + reader)].values;
        std::transform(sum.begin(), sum.end(), part.begin(), sum.begin(), std::plus<>());
    }
    EXPECT_LT(relative_distance(got.gradients[1].values, sum), 1e-5) << readers << " readers";
    EXPECT_LT(relative_distance(got.gradients[0].values, want.gradients[0].values), 1e-5)
        << readers << " readers";
}

TEST(SharedParameters, HaveTheSumOfTheirReadersGradients) {
    for (int readers = 2; readers <= 30; ++readers) expect_sum_of_gradients(readers);
}

TEST(SharedParameters, AreCompleteWhenTheLastReaderHasWrittenItsPart) {
    const Graph graph = chain(3, true);
    NetworkRunner runner(graph);
    for (const auto& [parameter, count] : completions(runner.network)) {
        EXPECT_EQ(count, 1) << graph.parameters()[static_cast<std::size_t>(parameter)].name;
    }
    EXPECT_EQ(completions(runner.network).size(), graph.parameters().size());
    bool is_written = false;
    for (const KernelCall& call : runner.network.calls()) {
        is_written |= call.name == "reader0" && call.pass == ops::Pass::weight_gradient;
        if (std::ranges::count(call.final_gradients, ParameterId{1}) > 0) {
            EXPECT_TRUE(is_written) << call.name;
        }
    }
}

TEST(UntrainedParameters, HaveNoGradientAndEndTheBackwardPass) {
    GraphMaker make;
    const auto frozen = make.graph.add_parameter({.name = "frozen.weight",
                                                  .shape = {8, 3, 3, 3},
                                                  .kind = ParameterKind::filters,
                                                  .is_trained = false});
    ValueId x = make.images({2, 6, 6, 3});
    x = make.graph.add_node("frozen", ops::Convolution{make.shape(x), 8, 3, 1, 1}, {x}, {frozen});
    const Graph graph = make.finish(make.convolution("trained", make.relu("relu", x), 8), 3);
    NetworkRunner runner(graph);
    for (const KernelCall& call : runner.network.calls()) {
        if (call.name != "frozen" && call.name != "relu") continue;
        EXPECT_TRUE(call.pass == ops::Pass::prepare || call.pass == ops::Pass::forward)
            << call.name;
    }
    // The all-reduce of gradients waits for every parameter.
    EXPECT_EQ(completions(runner.network).size(), graph.parameters().size());
}

TEST(SeveralLosses, AllSendTheirGradients) {
    GraphMaker make;
    const ValueId x = make.relu("relu", make.convolution("conv", make.images({2, 6, 6, 3}), 8, 3));
    const ValueId features =
        make.graph.add_node("pool", ops::GlobalAveragePool{make.shape(x)}, {x});
    const ValueId labels = make.graph.add_input("labels", {2}, tensor::DType::s32);
    for (const std::string name : {"first", "second"}) {
        const auto weight =
            make.graph.add_parameter({name + ".weight", {3, 8}, ParameterKind::linear_weight});
        const auto bias = make.graph.add_parameter({name + ".bias", {3}, ParameterKind::bias});
        const ValueId logits = make.graph.add_node(name, ops::Linear{make.shape(features), 3},
                                                   {features}, {weight, bias});
        make.graph.add_node(name + ".loss", ops::SoftmaxCrossEntropy{make.shape(logits)},
                            {logits, labels});
    }
    const Graph graph = make.graph;
    const Inputs inputs = random_inputs(graph);
    Tensors parameters = random_parameters(graph);
    NetworkRunner runner(graph);
    ASSERT_EQ(runner.network.losses().size(), 2U);
    const auto loss = [&] {
        Observer nobody;
        runner.set_parameters(parameters);
        NetworkRunner::set_inputs(runner.network, inputs);
        runner.network.prepare(nobody);
        runner.network.forward(nobody);
        const std::vector<float> losses = read_losses(*runner.device, runner.network);
        return std::accumulate(losses.begin(), losses.end(), 0.0);
    };
    loss();
    Observer nobody;
    runner.network.backward(nobody);
    const std::vector<float> gradient = runner.store.read(runner.store.gradient(0));
    for (const std::size_t i : {std::size_t{0}, std::size_t{100}}) {
        constexpr double kStep = 1e-2;
        const double before = parameters[0].values[i];
        parameters[0].values[i] = before + kStep;
        const double above = loss();
        parameters[0].values[i] = before - kStep;
        const double below = loss();
        parameters[0].values[i] = before;
        EXPECT_NEAR((above - below) / (2 * kStep), gradient[i], 2e-3) << i;
    }
}

}  // namespace
}  // namespace hpcai::graph
