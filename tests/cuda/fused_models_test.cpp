// SPDX-License-Identifier: Apache-2.0
// The fused operations of every configured model, planned for an H200 without one.
#include <map>
#include <set>

#include <gtest/gtest.h>

#include <hpcai/config/reader.hpp>
#include <hpcai/graph/fuse_for_device.hpp>
#include <hpcai/models/make_model.hpp>

#include "cuda/planned.hpp"
#include "device/cuda/acceptance.hpp"

namespace hpcai::device::cuda {
namespace {

graph::Graph fused(const graph::Graph& graph, Acceptance& acceptance, DType compute) {
    const graph::Accepts accepts = [&](const ops::Operation& operation,
                                       const KernelOptions& options) {
        return acceptance(operation, options);
    };
    return graph::fuse_for_device(graph, accepts, {Mode::training, compute});
}

std::map<std::string, int> census(const graph::Graph& graph) {
    std::map<std::string, int> counts;
    for (const graph::Node& node : graph.nodes()) {
        ++counts[std::string(name_of(node.operation))];
        counts["sums"] += outputs_channel_sums(node.operation);
    }
    return counts;
}

/// Plans the fused convolutions of the graph; `seen` are those that were planned before.
void expect_plans(const graph::Graph& graph, const Context& context, std::set<std::string>& seen) {
    for (const graph::Node& node : graph.nodes()) {
        if (!outputs_channel_sums(node.operation)) continue;
        const KernelOptions options{.compute = DType::f16,
                                    .needs_input_gradient = !graph.needs_no_input_gradient(node)};
        const auto& convolution = std::get<ops::Convolution>(node.operation);
        const std::string shape = to_string(convolution_shape(convolution, options));
        if (!seen.insert(shape).second) continue;
        SCOPED_TRACE(node.name + ": " + shape);
        EXPECT_NO_THROW(build(convolution, options, context));
    }
}

TEST(FusedModels, HavePlansForEveryFusedConvolutionOfEveryConfiguredModel) {
    const Context context = described_h200();
    Acceptance acceptance(context);
    std::set<std::string> seen;
    for (const auto& file : std::filesystem::directory_iterator(source_folder() / "configs")) {
        if (file.is_directory()) continue;
        const std::string path = file.path().string();
        const config::Config config = config::parse(config::read_file(path), path, {});
        const std::int64_t batch = std::min<std::int64_t>(config.training.batch_size, 256);
        expect_plans(fused(models::make_model(config, {.batch = batch}), acceptance, DType::f16),
                     context, seen);
    }
    EXPECT_GT(seen.size(), 40U);
}

TEST(FusedModels, FuseAllOfResNet50InFp16) {
    const Context context = described_h200();
    Acceptance acceptance(context);
    auto counts = census(fused(models::make_model({}, {.batch = 256}), acceptance, DType::f16));
    EXPECT_EQ(counts["dual_norm"], 3);
    EXPECT_EQ(counts["sums"], 41);
    EXPECT_EQ(counts["pointwise_norm"], 12);   // not where images have 7 x 7 pixels
    EXPECT_EQ(counts["batch_norm_relu"], 32);  // two per block
    EXPECT_EQ(counts["norm_pool"], 1);
    EXPECT_EQ(counts["batch_norm_add_relu"], 2);
}

TEST(FusedModels, FuseNormsOnlyInOtherTypes) {
    const Context context = described_h200();
    Acceptance acceptance(context);
    for (const DType compute : {DType::bf16, DType::f32}) {
        auto counts = census(fused(models::make_model({}, {.batch = 256}), acceptance, compute));
        EXPECT_EQ(counts["sums"], 0);
        EXPECT_EQ(counts["pointwise_norm"], compute == DType::bf16 ? 12 : 0);
        EXPECT_EQ(counts["dual_norm"], compute == DType::bf16 ? 3 : 4);
        EXPECT_EQ(counts["norm_pool"], 1);
    }
}

}  // namespace
}  // namespace hpcai::device::cuda
