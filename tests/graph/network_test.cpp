// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <hpcai/base/error.hpp>

#include "graph/graphs.hpp"
#include "support/network_runner.hpp"

namespace hpcai::graph {
namespace {

TEST(NaiveNetwork, AgreesWithCentralDifferencesInEveryParameter) {
    const Graph graph = every_operation();
    naive::Network network(graph);
    const Inputs inputs = random_inputs(graph);
    Tensors parameters = random_parameters(graph);
    const auto loss = [&] {
        double total = 0;
        for (const double row : network.run(inputs, parameters, 1).losses) total += row;
        return total;
    };
    const auto gradients = network.run(inputs, parameters, 1).gradients;
    constexpr double kStep = 1e-5;
    for (std::size_t id = 0; id < parameters.size(); ++id) {
        for (std::size_t i = 0; i < parameters[id].values.size(); i += 101) {
            double& value = parameters[id].values[i];
            const double before = value;
            value = before + kStep;
            const double above = loss();
            value = before - kStep;
            const double below = loss();
            value = before;
            EXPECT_NEAR((above - below) / (2 * kStep), gradients[id].values[i], 1e-6)
                << graph.parameters()[id].name << " at " << i;
        }
    }
}

TEST(Network, SumsAsManyGradientsAsAValueHasReaders) {
    for (const int readers : {2, 3, 4, 5}) {
        GraphMaker make;
        const ValueId x = make.relu("relu", make.convolution("conv", make.images({2, 4, 4, 3}), 8));
        ValueId sum = make.convolution("reader0", x, 8);
        for (int reader = 1; reader < readers; ++reader) {
            const std::string number = std::to_string(reader);
            sum = make.add("add" + number, sum, make.convolution("reader" + number, x, 8));
        }
        const Graph graph = make.finish(sum, 3);
        const Inputs inputs = random_inputs(graph);
        const Tensors parameters = random_parameters(graph);
        NetworkRunner runner(graph);
        runner.set_parameters(parameters);
        expect_same_step(runner.step(inputs), naive::Network(graph).run(inputs, parameters, 1),
                         graph, 1e-5);
    }
}

TEST(Network, AddsAValueToItself) {
    GraphMaker make;
    const ValueId x = make.convolution("conv", make.images({2, 4, 4, 3}), 8);
    const Graph graph = make.finish(make.add("twice", x, x), 3);
    const Inputs inputs = random_inputs(graph);
    const Tensors parameters = random_parameters(graph);
    NetworkRunner runner(graph);
    runner.set_parameters(parameters);
    expect_same_step(runner.step(inputs), naive::Network(graph).run(inputs, parameters, 1), graph,
                     1e-5);
}

TEST(Network, TrainsALinearModelOfPixels) {
    GraphMaker make;
    const ValueId x = make.images({6, 4, 4, 3});
    const Graph graph = make.finish(x, 3);
    const Inputs inputs = random_inputs(graph);
    const Tensors parameters = random_parameters(graph);
    NetworkRunner runner(graph);
    runner.set_parameters(parameters);
    expect_same_step(runner.step(inputs), naive::Network(graph).run(inputs, parameters, 1), graph,
                     1e-5);
}

TEST(Network, KeepsAnUnreadInputSeparate) {
    GraphMaker make;
    make.graph.add_input("weather", {2}, tensor::DType::s32);
    const Graph graph = make.finish(make.convolution("conv", make.images({2, 4, 4, 3}), 8), 3);
    NetworkRunner runner(graph);
    runner.set_parameters(random_parameters(graph));
    const Inputs inputs = random_inputs(graph);
    const double loss = runner.loss(inputs);
    Observer nobody;
    NetworkRunner::set_inputs(runner.network, inputs);
    const std::vector<std::byte> storm(8, std::byte{0xff});
    runner.network.set_input("weather", storm);
    runner.network.forward(nobody);
    const auto losses = runner.read(runner.network).losses;
    EXPECT_DOUBLE_EQ(losses[0] + losses[1], loss);
}

TEST(Network, GoesBackNoFurtherThanToTheFirstParameter) {
    GraphMaker make;
    const ValueId x = make.max_pool("pool", make.relu("relu", make.images({2, 8, 8, 3})));
    const Graph graph = make.finish(make.convolution("conv", x, 8), 3);
    const Inputs inputs = random_inputs(graph);
    const Tensors parameters = random_parameters(graph);
    NetworkRunner runner(graph);
    runner.set_parameters(parameters);
    expect_same_step(runner.step(inputs), naive::Network(graph).run(inputs, parameters, 1), graph,
                     1e-5);
    for (const KernelCall& call : runner.network.calls()) {
        if (call.pass == ops::Pass::forward || call.pass == ops::Pass::prepare) continue;
        EXPECT_TRUE(call.name == "conv" || call.name == "avgpool" || call.name == "fc" ||
                    call.name == "loss")
            << call.name;
    }
}

/// Copies each gradient when the network reports it as final.
class GradientKeeper : public Observer {
public:
    explicit GradientKeeper(ParameterStore& store) : store_(store) {}
    void after(const KernelCall& call) override {
        for (const ParameterId id : call.final_gradients) {
            const auto gradient = store_.gradient(id);
            EXPECT_TRUE(
                kept.emplace(id, std::vector<float>(gradient.begin(), gradient.end())).second)
                << "parameter " << id << " was final twice";
        }
    }
    std::map<ParameterId, std::vector<float>> kept;

private:
    ParameterStore& store_;
};

TEST(Network, ReportsOnceWhenAGradientIsFinalAndChangesItNoMore) {
    for (const Graph& graph : {every_operation(), fuse(every_operation())}) {
        NetworkRunner runner(graph);
        runner.set_parameters(random_parameters(graph));
        Observer nobody;
        GradientKeeper keeper(runner.store);
        NetworkRunner::set_inputs(runner.network, random_inputs(graph));
        runner.network.prepare(nobody);
        runner.network.forward(keeper);
        EXPECT_TRUE(keeper.kept.empty());
        runner.network.backward(keeper);
        EXPECT_EQ(keeper.kept.size(), graph.parameters().size());
        for (const auto& [id, values] : keeper.kept) {
            const auto gradient = runner.store.gradient(id);
            EXPECT_TRUE(std::equal(values.begin(), values.end(), gradient.begin()));
        }
    }
}

/// The names of the steps, in order, with their pass.
class StepList : public Observer {
public:
    void before(const KernelCall& call) override { ++open_, add(call); }
    void after(const KernelCall&) override { --open_; }
    std::vector<std::string> names;

private:
    void add(const KernelCall& call) {
        EXPECT_EQ(open_, 1);
        names.push_back(call.name + " " + std::string(name_of(call.pass)));
    }
    int open_ = 0;
};

TEST(Network, ListsItsStepsAsItRunsThem) {
    const Graph graph = every_operation();
    NetworkRunner runner(graph);
    NetworkRunner::set_inputs(runner.network, random_inputs(graph));
    StepList list;
    runner.network.prepare(list);
    runner.network.forward(list);
    runner.network.backward(list);
    std::vector<std::string> expected;
    for (const KernelCall& call : runner.network.calls()) {
        expected.push_back(call.name + " " + std::string(name_of(call.pass)));
    }
    EXPECT_EQ(list.names, expected);
    EXPECT_EQ(list.names.back(), "conv0 weight_gradient");
    EXPECT_EQ(std::count(expected.begin(), expected.end(), "pool.gradient forward"), 2);
}

TEST(Network, InferenceReadsTheParametersAndStatisticsOfTraining) {
    const Graph graph = every_operation();
    NetworkRunner runner(graph);
    runner.set_parameters(random_parameters(graph));
    Network inference(graph, *runner.device, runner.store, {device::Mode::inference});
    Observer nobody;
    const Inputs inputs = random_inputs(graph);
    const auto evaluate = [&] {
        NetworkRunner::set_inputs(inference, inputs);
        inference.prepare(nobody);
        inference.forward(nobody);
        return runner.read(inference).probabilities;
    };
    const auto before = evaluate();
    // Running statistics converge to the batch's (the variance to the unbiased one), and inference
    // then gives nearly what training gives.
    naive::NetworkResult trained;
    for (int step = 0; step < 200; ++step) trained = runner.step(inputs);
    EXPECT_GT(relative_distance(before, trained.probabilities), 0.03);
    EXPECT_LT(relative_distance(evaluate(), trained.probabilities), 0.01);
    // An optimizer step reaches inference through prepare().
    runner.update({}, 1);
    EXPECT_GT(relative_distance(evaluate(), trained.probabilities), 0.05);
}

TEST(Network, OfInferenceNeedsLessMemoryThanTrainingAndNoGradients) {
    const Graph graph = every_operation();
    const auto device = device::make_cpu_device({});
    ParameterStore store(graph, *device);
    const Network training(graph, *device, store, {device::Mode::training});
    const Network inference(graph, *device, store, {device::Mode::inference});
    EXPECT_LT(2 * inference.memory().arena_bytes, training.memory().arena_bytes);
    std::size_t values = 0;
    for (const Value& value : graph.values()) {
        values += static_cast<std::size_t>(value.shape.elements()) * sizeof(float);
    }
    EXPECT_LT(training.memory().arena_bytes, 2 * values);
    for (const KernelCall& call : inference.calls()) EXPECT_TRUE(call.final_gradients.empty());
}

TEST(Network, RejectsInputsItDoesNotHaveAndOtherSizes) {
    const Graph graph = every_operation();
    NetworkRunner runner(graph);
    const std::vector<std::byte> bytes(4 * 9 * 8 * 3);
    EXPECT_NO_THROW(runner.network.set_input("images", bytes));
    EXPECT_THROW(runner.network.set_input("pictures", bytes), Error);
    EXPECT_THROW(runner.network.set_input("images", std::span(bytes).first(5)), Error);
    std::vector<float> numbers(3);
    EXPECT_THROW(runner.network.read_output(numbers), Error);
}

TEST(Network, DoesNotTrainAGraphWithoutALoss) {
    GraphMaker make;
    make.convolution("conv", make.images({2, 4, 4, 3}), 8);
    const auto device = device::make_cpu_device({});
    ParameterStore store(make.graph, *device);
    EXPECT_NO_THROW(Network(make.graph, *device, store, {device::Mode::inference}));
    EXPECT_THROW(Network(make.graph, *device, store, {device::Mode::training}), Error);
}

TEST(ParameterStore, KeepsEveryParameterInItsOwnAlignedRange) {
    const Graph graph = every_operation();
    const auto device = device::make_cpu_device({});
    ParameterStore store(graph, *device, 2);
    ASSERT_EQ(store.ranges().size(), graph.parameters().size());
    std::size_t end = 0;
    for (std::size_t id = 0; id < store.ranges().size(); ++id) {
        const auto [begin, stop] = store.ranges()[id];
        EXPECT_GE(begin, end);
        EXPECT_EQ(begin % 16, 0u);
        EXPECT_EQ(stop - begin, static_cast<std::size_t>(graph.parameters()[id].shape.elements()));
        EXPECT_EQ(store.parameter(static_cast<ParameterId>(id)).data(),
                  store.parameters().data() + begin);
        end = stop;
    }
    EXPECT_LE(end, store.parameters().size());
    EXPECT_EQ(store.gradients().size(), store.parameters().size());
    ASSERT_EQ(store.states(), 2);
    EXPECT_EQ(store.state(1).size(), store.parameters().size());
}

TEST(ParameterStore, StartsStatisticsAtMeanZeroAndVarianceOne) {
    const Graph graph = every_operation();
    const auto device = device::make_cpu_device({});
    ParameterStore store(graph, *device);
    EXPECT_EQ(store.statistics().size(), 2 * 48u);
    for (std::int32_t norm = 0; norm < 3; ++norm) {
        for (const float mean : store.running_mean(norm)) EXPECT_EQ(mean, 0);
        for (const float variance : store.running_variance(norm)) EXPECT_EQ(variance, 1);
    }
    store.running_variance(2)[15] = 5;
    EXPECT_EQ(store.statistics().back(), 5);
}

}  // namespace
}  // namespace hpcai::graph
