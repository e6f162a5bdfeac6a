// SPDX-License-Identifier: Apache-2.0
#include <fstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <hpcai/results/pytorch_network.hpp>
#include <hpcai/training/weights_file.hpp>

#include "cli/child_process.hpp"
#include "morphs/logits.hpp"
#include "morphs/scripts.hpp"
#include "support/largest_error.hpp"

/// Networks written in Python, whose layers tests/results/pytorch_network.py computes by loops.
namespace hpcai::results {
namespace {

using morphs::Model;
using nlohmann::json;

/// The random images of a model, normalized and as (N, C, H, W).
json normalized_images(const graph::Graph& graph) {
    const auto& normalize = std::get<ops::InputNormalize>(graph.nodes().front().operation);
    const auto images = graph::random_inputs(graph).at("images");
    const auto [batch, rows, columns, channels] =
        std::array{normalize.input[0], normalize.input[1], normalize.input[2], normalize.input[3]};
    json all = json::array();
    for (std::int64_t image = 0; image < batch; ++image) {
        for (std::int64_t channel = 0; channel < channels; ++channel) {
            for (std::int64_t row = 0; row < rows; ++row) {
                for (std::int64_t column = 0; column < columns; ++column) {
                    const auto index =
                        ((image * rows + row) * columns + column) * channels + channel;
                    all[image][channel][row][column] =
                        (images.values[index] / 255 - normalize.mean[channel]) /
                        normalize.standard_deviation[channel];
                }
            }
        }
    }
    return all;
}

/// The logits of the written network with the written weights.
std::vector<float> logits_in_python(const Model& model) {
    const storage::TemporaryFolder folder;
    const auto device = device::make_cpu_device({});
    graph::ParameterStore store(model.graph, *device);
    write_weights(model.weights, model.graph, store);
    training::write_weights(folder / "w.safetensors", model.graph, store, 7);
    std::ofstream(folder / "w.py") << pytorch_network(model.graph);
    std::ofstream(folder / "images.json") << normalized_images(model.graph);
    const cli::Outcome outcome =
        cli::execute_in(folder.path(), {"python3", cli::source("tests/results/pytorch_network.py"),
                                        "w.py", "w.safetensors", "images.json"});
    EXPECT_EQ(outcome.exit_code, 0) << outcome.error;
    std::vector<float> logits;
    for (const json& row : json::parse(outcome.out))
        for (const json& value : row) logits.push_back(value.get<float>());
    return logits;
}

TEST(PytorchNetwork, ComputesTheLogitsOfSearchedNetworks) {
    tests::LargestError error("logits of an exported network", 1e-4);
    models::ResNet50 options = morphs::small_root(1);
    for (const bool stride_on_3x3 : {true, false}) {
        options.backbone.stride_on_3x3 = stride_on_3x3;
        const graph::Graph root = make_resnet50(options);
        for (const std::uint32_t number : {500, 501, 502}) {
            const graph::Graph child =
                morphs::apply_all(root, morphs::random_script(root, 6, number, true));
            const Model model{child, morphs::random_weights(child, number)};
            const std::vector<float> want = logits(model, device::Mode::inference);
            const std::vector<float> found = logits_in_python(model);
            ASSERT_EQ(found.size(), want.size());
            double scale = 0;
            for (const float value : want) scale = std::max(scale, std::abs(double{value}));
            for (std::size_t i = 0; i < want.size(); ++i)
                error.add(std::abs(double{found[i]} - want[i]) / scale, fmt::format("{}", number));
        }
    }
}

}  // namespace
}  // namespace hpcai::results
