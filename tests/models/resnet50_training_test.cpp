// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "models/networks.hpp"
#include "support/largest_error.hpp"
#include "support/network_runner.hpp"

/// Whole training steps of a small ResNet.
namespace hpcai::models {
namespace {

using graph::Graph;
using graph::Inputs;
using graph::NetworkRunner;
using graph::ParameterId;
using graph::Tensors;

/// Channels of width 8 do not fill a vector; the fast kernels need width 16.
ResNet50 tiny(std::int64_t width) {
    return {.batch = 8,
            .image_size = 32,
            .classes = 3,
            .label_smoothing = 0.1,
            .backbone = {.width = width, .blocks = {1, 1, 1, 1}, .zero_gamma = false}};
}

TEST(TinyResNet, AgreesWithTheNaiveNetwork) {
    tests::LargestError error("small ResNet v1 and v1.5, unfused and fused", 1e-4);
    for (const bool stride_on_3x3 : {true, false}) {
        ResNet50 options = tiny(8);
        options.batch = 4;
        options.backbone.stride_on_3x3 = stride_on_3x3;
        const Graph graph = make_resnet50(options);
        const Inputs inputs = graph::random_inputs(graph);
        const Tensors parameters = graph::random_parameters(graph);
        const auto want = naive::Network(graph).run(inputs, parameters, 0.125);
        for (const Graph& variant : {graph, graph::fuse(graph)}) {
            NetworkRunner runner(variant);
            runner.set_parameters(parameters);
            graph::add_step(error, runner.step(inputs, 0.125f), want, graph);
        }
    }
}

TEST(TinyResNet, AgreesWithCentralDifferencesAlongTheGradient) {
    const Graph graph = graph::fuse(make_resnet50(tiny(16)));
    const Inputs inputs = graph::random_inputs(graph);
    Tensors parameters = graph::random_parameters(graph);
    NetworkRunner runner(graph);
    runner.set_parameters(parameters);
    const auto gradients = runner.step(inputs).gradients;
    tests::LargestError error("small ResNet's gradients", 0.02);
    for (std::size_t id = 0; id < parameters.size(); ++id) {
        double length = 0;
        for (const double value : gradients[id].values) length += value * value;
        length = std::sqrt(length);
        ASSERT_GT(length, 0) << graph.parameters()[id].name;
        // The loss of 8 rows changes by about 0.01 in each direction; its rounding is 1e-6.
        const double step = 0.005 / length;
        const auto loss_at = [&](double distance) {
            Tensors moved = parameters;
            for (std::size_t i = 0; i < moved[id].values.size(); ++i) {
                moved[id].values[i] += distance * gradients[id].values[i] / length;
            }
            runner.set_parameters(moved);
            return runner.loss(inputs);
        };
        const double slope = (loss_at(step) - loss_at(-step)) / (2 * step);
        error.add(std::abs(slope / length - 1), graph.parameters()[id].name);
    }
}

TEST(TinyResNet, AveragesTwoHalfBatchesWhenStatisticsSpanHalfABatch) {
    ResNet50 whole_options = tiny(16), half_options = tiny(16);
    whole_options.backbone.norm.statistics_samples = 4;
    half_options.batch = 4;
    const Graph whole = graph::fuse(make_resnet50(whole_options));
    const Graph half = graph::fuse(make_resnet50(half_options));
    const Inputs inputs = graph::random_inputs(whole);
    const Tensors parameters = graph::random_parameters(whole);
    NetworkRunner together(whole);
    together.set_parameters(parameters);
    const auto got = together.step(inputs, 1.0f / 8);

    naive::NetworkResult want;
    std::vector<float> statistics(together.store.statistics().size());
    for (int part = 0; part < 2; ++part) {
        Inputs mine;
        for (const auto& [name, tensor] : inputs) {
            naive::Tensor rows(half.value(half.find(name)).shape);
            const auto first =
                tensor.values.begin() + part * static_cast<std::ptrdiff_t>(rows.values.size());
            std::copy_n(first, rows.values.size(), rows.values.begin());
            mine[name] = rows;
        }
        NetworkRunner apart(half);
        apart.set_parameters(parameters);
        const auto result = apart.step(mine, 1.0f / 8);
        const auto append = [](std::vector<double>& to, const std::vector<double>& from) {
            to.insert(to.end(), from.begin(), from.end());
        };
        append(want.losses, result.losses);
        append(want.probabilities, result.probabilities);
        for (std::size_t id = 0; id < result.gradients.size(); ++id) {
            if (part == 0)
                want.gradients.push_back(result.gradients[id]);
            else
                want.gradients[id] = naive::sum({want.gradients[id], result.gradients[id]});
        }
        for (std::size_t i = 0; i < statistics.size(); ++i) {
            statistics[i] += apart.store.statistics()[i] / 2;
        }
    }
    graph::expect_same_step(got, want, whole, 1e-4);
    for (std::size_t i = 0; i < statistics.size(); ++i) {
        EXPECT_NEAR(together.store.statistics()[i], statistics[i], 1e-5);
    }
}

TEST(TinyResNet, GivesPaddingRowsNoEffectOnTheGradient) {
    // Two rows of padding change the statistics, but neither the loss nor the classifier's
    // gradient.
    ResNet50 options = tiny(16);
    options.batch = 4;
    const Graph graph = graph::fuse(make_resnet50(options));
    Inputs inputs = graph::random_inputs(graph);
    inputs["labels"][0] = inputs["labels"][2] = -1;
    const Tensors parameters = graph::random_parameters(graph);
    NetworkRunner runner(graph);
    runner.set_parameters(parameters);
    const auto got = runner.step(inputs);
    EXPECT_EQ(got.losses[0], 0);
    EXPECT_EQ(got.losses[2], 0);
    graph::expect_same_step(got, naive::Network(graph).run(inputs, parameters, 1), graph, 1e-4);
}

TEST(TinyResNet, LearnsABatchByHeartInEveryPrecision) {
    for (const auto compute : device::make_cpu_device({})->compute_dtypes()) {
        const Graph graph = graph::fuse(make_resnet50(tiny(16)));
        const Inputs inputs = graph::random_inputs(graph);
        NetworkRunner runner(graph, {.compute = compute});
        runner.set_parameters(graph::random_parameters(graph));
        double first = 0, last = 0;
        for (int step = 0; step < 40; ++step) {
            const auto result = runner.step(inputs, 1.0f / 8);
            last = 0;
            for (const double loss : result.losses) last += loss / 8;
            if (step == 0) first = last;
            runner.update({device::Sgd{0.9f}}, 0.02);
        }
        EXPECT_GT(first, 0.8);
        EXPECT_LT(last, 0.30) << name_of(compute);
        EXPECT_GT(last, 0.291) << name_of(compute);  // the entropy of the smoothed target
    }
}

TEST(TinyResNet, IsTheSameStepForAnyNumberOfThreads) {
    const Graph graph = graph::fuse(make_resnet50(tiny(16)));
    const Inputs inputs = graph::random_inputs(graph);
    const Tensors parameters = graph::random_parameters(graph);
    std::vector<naive::NetworkResult> results;
    for (const int threads : {1, 2}) {
        NetworkRunner runner(graph, {.threads = threads});
        runner.set_parameters(parameters);
        results.push_back(runner.step(inputs));
    }
    graph::expect_same_step(results[1], results[0], graph, 1e-5);
}

}  // namespace
}  // namespace hpcai::models
