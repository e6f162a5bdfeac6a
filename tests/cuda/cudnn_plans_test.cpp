// SPDX-License-Identifier: Apache-2.0
// Plans for an H200, built and finalized by cuDNN without one.
#include <algorithm>
#include <set>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include <hpcai/config/reader.hpp>
#include <hpcai/models/make_model.hpp>

#include "cuda/planned.hpp"
#include "device/cuda/cudnn_choice.hpp"

namespace hpcai::device::cuda {
namespace {

constexpr std::array kPrecisions{
    KernelOptions{.compute = DType::f16}, KernelOptions{.compute = DType::bf16},
    KernelOptions{.compute = DType::f32}, KernelOptions{.compute = DType::f32, .tf32 = true}};

/// A convolution of a model, and whether a model needs its input gradient.
struct Layer {
    ops::Convolution op;
    bool first = false;
};

void collect(const graph::Graph& graph, std::vector<Layer>& layers) {
    std::set<std::string> seen;
    for (const Layer& layer : layers) seen.insert(to_string(convolution_shape(layer.op, {})));
    for (const graph::Node& node : graph.nodes()) {
        const auto* op = std::get_if<ops::Convolution>(&node.operation);
        if (op == nullptr || !seen.insert(to_string(convolution_shape(*op, {}))).second) continue;
        layers.push_back({*op, graph.needs_no_input_gradient(node)});
    }
}

/// Returns every distinct convolution of the models of all files in configs/. A batch that ranks
/// divide is planned as one part of 256.
std::vector<Layer> configured_layers() {
    std::vector<Layer> layers;
    for (const auto& file : std::filesystem::directory_iterator(source_folder() / "configs")) {
        if (file.is_directory()) continue;
        const std::string path = file.path().string();
        const config::Config config = config::parse(config::read_file(path), path, {});
        const std::int64_t batch = std::min<std::int64_t>(config.training.batch_size, 256);
        collect(models::make_model(config, {.batch = batch}), layers);
    }
    return layers;
}

/// Returns why no plan exists; empty if one does.
std::string refusal(const ConvolutionShape& shape, ConvolutionPass pass, const Context& context) {
    try {
        ConvolutionPlans plans(shape, pass, context, ConvolutionPlans::Search::quick);
        const int plan = first_usable(plans, {});
        if (plan < 0) return "none of " + std::to_string(plans.count()) + " plans is supported";
        return plans.name(plan).empty() ? "a plan without a name" : "";
    } catch (const std::exception& error) {
        return error.what();
    }
}

TEST(CudnnPlans, ExistForEveryConvolutionOfEveryConfiguredModel) {
    const Context context = described_h200();
    const std::vector<Layer> layers = configured_layers();
    ASSERT_GT(layers.size(), 60U);
    for (const Layer& layer : layers) {
        for (const KernelOptions& precision : kPrecisions) {
            KernelOptions options = precision;
            options.needs_input_gradient = !layer.first;
            const ConvolutionShape shape = convolution_shape(layer.op, options);
            EXPECT_EQ(refusal(shape, ConvolutionPass::forward, context), "");
            EXPECT_EQ(refusal(shape, ConvolutionPass::weight_gradient, context), "");
            if (layer.first) continue;
            EXPECT_EQ(refusal(shape, ConvolutionPass::input_gradient, context), "");
        }
    }
}

/// Returns ResNet-50's convolutions of 256 images of 224 x 224 pixels, without the first.
std::vector<Layer> resnet50_layers() {
    std::vector<Layer> layers;
    collect(models::make_model({}, {.batch = 256}), layers);
    std::erase_if(layers, [](const Layer& layer) { return layer.first; });
    return layers;
}

TEST(CudnnPlans, FuseStatisticsIntoConvolutionsOfFp16) {
    const Context context = described_h200();
    const std::vector<Layer> layers = resnet50_layers();
    ASSERT_EQ(layers.size(), 22U);
    for (const Layer& layer : layers) {
        const ConvolutionShape shape = convolution_shape(layer.op, {.compute = DType::f16});
        EXPECT_EQ(refusal(shape, ConvolutionPass::forward_with_statistics, context), "");
    }
}

TEST(CudnnPlans, FuseStatisticsIntoTheFirstConvolutionOfFp16) {
    const Layer stem{{{256, 224, 224, 3}, 64, 7, 2, 3}, true};
    const KernelOptions options{.compute = DType::f16, .needs_input_gradient = false};
    const ConvolutionShape shape = convolution_shape(stem.op, options);
    EXPECT_EQ(refusal(shape, ConvolutionPass::forward_with_statistics, described_h200()), "");
}

TEST(CudnnPlans, DoNotFuseInOtherPrecisions) {
    // If this fails, cuDNN supports more: let the engine use it.
    const Context context = described_h200();
    for (const Layer& layer : resnet50_layers()) {
        for (const DType dtype : {DType::bf16, DType::f32}) {
            const ConvolutionShape shape = convolution_shape(layer.op, {.compute = dtype});
            EXPECT_NE(refusal(shape, ConvolutionPass::forward_with_statistics, context), "")
                << to_string(shape);
        }
    }
}

TEST(CudnnPlans, HaveTheSameNameEachTime) {
    const Context context = described_h200();
    const ConvolutionShape shape{.images = 256,
                                 .height = 56,
                                 .width = 56,
                                 .channels = 64,
                                 .filters = 64,
                                 .kernel = 3,
                                 .stride = 1,
                                 .padding = 1,
                                 .dtype = DType::f16};
    const auto names = [&] {
        const ConvolutionPlans plans(shape, ConvolutionPass::forward, context,
                                     ConvolutionPlans::Search::all);
        std::vector<std::string> all;
        for (int plan = 0; plan < plans.count(); ++plan) all.push_back(plans.name(plan));
        return all;
    };
    const std::vector<std::string> first = names();
    EXPECT_GT(first.size(), 5U);
    EXPECT_EQ(first, names());
}

TEST(CudnnPlans, RejectATypeThatTheyCannotComputeIn) {
    const ConvolutionShape shape{.images = 1,
                                 .height = 8,
                                 .width = 8,
                                 .channels = 8,
                                 .filters = 8,
                                 .kernel = 1,
                                 .stride = 1,
                                 .padding = 0,
                                 .dtype = DType::u8};
    EXPECT_NE(refusal(shape, ConvolutionPass::forward, described_h200()), "");
}

TEST(ConvolutionShape, HasBlocksOfPixelsForTheFirstLayerInHalfTypes) {
    const ops::Convolution stem{{8, 224, 224, 3}, 64, 7, 2, 3};
    KernelOptions options{.compute = DType::bf16, .needs_input_gradient = false};
    const ConvolutionShape blocks = convolution_shape(stem, options);
    EXPECT_EQ(to_string(blocks), "8x113x112x64 filters=64 kernel=4x1 stride=1 padding=1 bf16");
    options.needs_input_gradient = true;
    const ConvolutionShape pixels = convolution_shape(stem, options);
    EXPECT_EQ(to_string(pixels), "8x224x224x4 filters=64 kernel=7 stride=2 padding=3 bf16");
    for (const ConvolutionShape& shape : {blocks, pixels}) {
        EXPECT_EQ(shape.output_height(), 112);
        EXPECT_EQ(shape.output_width(), 112);
    }
}

TEST(ConvolutionShape, HasNoBlocksThatWouldChangeTheOutput) {
    const auto is_blocked = [](const ops::Convolution& op, DType dtype = DType::f16) {
        return reads_blocks(op, {.compute = dtype, .needs_input_gradient = false});
    };
    EXPECT_TRUE(is_blocked({{8, 224, 224, 3}, 64, 7, 2, 3}));
    EXPECT_TRUE(is_blocked({{8, 64, 32, 16}, 64, 3, 2, 1}));
    EXPECT_FALSE(is_blocked({{8, 224, 224, 3}, 64, 7, 2, 3}, DType::f32));
    EXPECT_FALSE(is_blocked({{8, 223, 224, 3}, 64, 7, 2, 3})) << "odd height";
    EXPECT_FALSE(is_blocked({{8, 224, 223, 3}, 64, 7, 2, 3})) << "odd width";
    EXPECT_FALSE(is_blocked({{8, 224, 224, 3}, 64, 7, 1, 3})) << "stride 1";
    EXPECT_FALSE(is_blocked({{8, 224, 224, 3}, 64, 5, 2, 2})) << "even padding";
    EXPECT_FALSE(is_blocked({{8, 224, 224, 3}, 64, 7, 2, 1})) << "padding that loses pixels";
    EXPECT_FALSE(is_blocked({{8, 224, 224, 2}, 64, 7, 2, 3})) << "2 channels";
    EXPECT_FALSE(is_blocked({{8, 224, 224, 32}, 64, 7, 2, 3})) << "32 channels";
}

}  // namespace
}  // namespace hpcai::device::cuda
