// SPDX-License-Identifier: Apache-2.0
#include <cstring>
#include <vector>

#include <gtest/gtest.h>

#include "models/networks.hpp"
#include "support/largest_error.hpp"
#include "support/network_runner.hpp"

/// Training steps of a small ResNet on a deterministic engine, with any number of threads.
namespace hpcai::models {
namespace {

using graph::Graph;
using graph::NetworkRunner;
using graph::RunnerOptions;

/// Returns a network of 18 samples, which is divided into parts of one and two samples.
Graph tiny_resnet() {
    return graph::fuse(
        make_resnet50({.batch = 18,
                       .image_size = 32,
                       .classes = 5,
                       .label_smoothing = 0.1,
                       .backbone = {.width = 16, .blocks = {1, 1, 1, 1}, .zero_gamma = false}}));
}

/// Returns all numbers after two steps: probabilities, gradients, parameters, momentum and running
/// statistics.
std::vector<float> train(const RunnerOptions& options) {
    const Graph graph = tiny_resnet();
    NetworkRunner runner(graph, options);
    runner.set_parameters(graph::random_parameters(graph));
    std::vector<float> left;
    for (const std::uint32_t stream : {21, 22}) {
        const auto result = runner.step(graph::random_inputs(graph, stream), 1.0f / 18);
        left.insert(left.end(), result.probabilities.begin(), result.probabilities.end());
        runner.update({device::Sgd{0.9f, true}, 1e-4f}, 0.05);
    }
    for (const auto values : {runner.store.parameters(), runner.store.gradients(),
                              runner.store.state(0), runner.store.statistics()}) {
        left.insert(left.end(), values.begin(), values.end());
    }
    return left;
}

std::vector<RunnerOptions> all_kinds() {
    std::vector<RunnerOptions> kinds;
    for (const tensor::DType compute : device::make_cpu_device({})->compute_dtypes()) {
        for (const auto layout : {device::CpuLayout::automatic, device::CpuLayout::channels_last}) {
            kinds.push_back({.compute = compute, .layout = layout});
        }
    }
    return kinds;
}

TEST(DeterministicResNet, LeavesTheSameBitsWithAnyNumberOfThreads) {
    for (RunnerOptions options : all_kinds()) {
        options.deterministic = true;
        const std::vector<float> want = train(options);
        for (const int threads : {2, 3, 4, 4}) {
            options.threads = threads;
            const std::vector<float> got = train(options);
            ASSERT_EQ(got.size(), want.size());
            EXPECT_EQ(0, std::memcmp(got.data(), want.data(), want.size() * sizeof(float)))
                << name_of(options.compute) << " with " << threads << " threads";
        }
    }
}

TEST(DeterministicResNet, GivesTheGradientsOfTheOrdinaryEngine) {
    // In every precision, values are equal here, and gradients of parameters are fp32 sums of up to
    // 18 x 256 terms in another order.
    for (const RunnerOptions& ordinary : all_kinds()) {
        RunnerOptions deterministic = ordinary;
        deterministic.deterministic = true;
        deterministic.threads = 2;
        const Graph graph = tiny_resnet();
        const auto step = [&](const RunnerOptions& options) {
            NetworkRunner runner(graph, options);
            runner.set_parameters(graph::random_parameters(graph));
            return runner.step(graph::random_inputs(graph), 1.0f / 18);
        };
        const auto got = step(deterministic), want = step(ordinary);
        const std::string layout =
            ordinary.layout == device::CpuLayout::automatic ? "" : ", channels last";
        tests::LargestError error(
            "deterministic engine, gradients, " + std::string(name_of(ordinary.compute)) + layout,
            5e-6);
        for (std::size_t id = 0; id < want.gradients.size(); ++id) {
            error.add(graph::relative_distance(got.gradients[id].values, want.gradients[id].values),
                      graph.parameters()[id].name);
        }
    }
}

}  // namespace
}  // namespace hpcai::models
