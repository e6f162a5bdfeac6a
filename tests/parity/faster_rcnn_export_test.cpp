// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <hpcai/storage/safetensors.hpp>
#include <hpcai/training/weights_file.hpp>

#include "faster_rcnn_model.hpp"
#include "support/reference_json.hpp"

/// The benchmark's detector compared with torchvision's: state, anchors, exported weights, FLOPs.
namespace hpcai::parity {
namespace {

models::FasterRcnn benchmark() {
    models::FasterRcnn options;
    options.input.dtype = tensor::DType::f32;
    return options;
}

using Shapes = std::map<std::string, std::vector<std::int64_t>>;

Shapes torchvision_state() {
    return tests::read_reference_json("faster_rcnn.json")["state"].get<Shapes>();
}

TEST(FasterRcnnModel, HasTorchvisionsParametersAndAnchors) {
    const auto file = tests::read_reference_json("faster_rcnn.json");
    const graph::Graph graph = models::make_faster_rcnn(benchmark());
    EXPECT_EQ(graph.parameter_count(), 41'408'424);
    EXPECT_EQ(graph.parameter_count(), file["parameters"].get<std::int64_t>());
    const ops::Anchors anchors = models::make_anchors(benchmark());
    EXPECT_EQ(anchors.count(), 220'968);
    EXPECT_EQ(anchors.count(), file["anchors"].get<std::int64_t>());
    const auto cells = file["cell_anchors"].get<std::vector<std::vector<std::array<float, 4>>>>();
    ASSERT_EQ(cells.size(), anchors.levels.size());
    for (std::size_t level = 0; level < cells.size(); ++level) {
        EXPECT_EQ(anchors.levels[level].cell_anchors, cells[level]) << "P" << level + 2;
    }
}

class ExportedDetector : public testing::TestWithParam<models::Norm> {
protected:
    void SetUp() override {
        models::FasterRcnn options = benchmark();
        options.backbone.norm.kind = GetParam();
        const graph::Graph graph = models::make_faster_rcnn(options);
        const auto device = device::make_cpu_device({});
        graph::ParameterStore store(graph, *device);
        set_detector_state(graph, store);
        training::write_weights(path_, graph, store, 7);
    }
    void TearDown() override { std::filesystem::remove(path_); }

    const std::filesystem::path path_ =
        std::filesystem::path(testing::TempDir()) /
        ("exported_detector_" + std::to_string(static_cast<int>(GetParam())) + ".safetensors");
};

TEST_P(ExportedDetector, HasTorchvisionsNamesShapesAndOrderOfElements) {
    const storage::SafetensorsFile file = storage::read_safetensors(path_);
    Shapes expected = torchvision_state();
    for (const storage::StoredTensor& tensor : file.tensors()) {
        if (tensor.name.ends_with(".num_batches_tracked")) continue;
        ASSERT_TRUE(expected.contains(tensor.name)) << tensor.name;
        EXPECT_EQ(tensor.shape, expected[tensor.name]) << tensor.name;
        expected.erase(tensor.name);
        if (tensor.name.ends_with("running_mean") || tensor.name.ends_with("running_var")) continue;
        const std::vector<float> want = detector_parameter(tensor.name, tensor.shape);
        ASSERT_EQ(tensor.bytes.size(), want.size() * sizeof(float));
        EXPECT_EQ(std::memcmp(tensor.bytes.data(), want.data(), tensor.bytes.size()), 0)
            << tensor.name;
    }
    EXPECT_TRUE(expected.empty()) << expected.begin()->first;
}

INSTANTIATE_TEST_SUITE_P(Of, ExportedDetector,
                         testing::Values(models::Norm::batch, models::Norm::frozen_batch),
                         [](const auto& test) {
                             return test.param == models::Norm::batch ? "batch" : "frozen_batch";
                         });

std::int64_t forward_flops(ops::Ledger ledger) {
    return graph::flops(models::make_faster_rcnn(benchmark()), ledger).forward;
}

/// 768 x 1152 with 512 regions: 182.0 billion multiply-accumulates.
TEST(FasterRcnnFlops, AreTwiceTheMultiplyAccumulatesInTwoMac) {
    EXPECT_EQ(forward_flops(ops::Ledger::two_mac), 364'098'588'672);
}

/// Convolutions count twice, linear layers once, and each element that a normalization, ReLU, sum
/// or pooling reads counts once.
TEST(FasterRcnnFlops, CountLinearLayersOnceInTable3) {
    const std::int64_t linear = 512LL * (12544 * 1024 + 1024 * 1024 + 1024 * 25);
    const std::int64_t beside = 515'577'856;
    EXPECT_EQ(forward_flops(ops::Ledger::table3), 364'098'588'672 - linear + beside);
}

}  // namespace
}  // namespace hpcai::parity
