// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <gtest/gtest.h>

#include <hpcai/group/model.hpp>
#include <hpcai/tensor/half.hpp>

#include "group/predict.hpp"
#include "support/recording_device.hpp"

namespace hpcai::group {
namespace {

using device::KernelOptions;
using device::RecordingDevice;

struct RankOfRun {
    context::RunContext context;
    context::Resources resources;

    Model make_model() const {
        return {make_training_graph(context, *resources.samples.training), context, resources};
    }
};

/// The options of the convolutions of a rank's training network, in the order of the nodes.
std::vector<KernelOptions> convolutions_of(const RankOfRun& rank) {
    std::vector<KernelOptions> all;
    for (const auto& build : static_cast<RecordingDevice&>(*rank.resources.device).builds()) {
        if (std::holds_alternative<ops::Convolution>(build.operation)) {
            all.push_back(build.options);
        }
    }
    return all;
}

/// Rank `world_rank` after the start of a run.
RankOfRun rank_of_run(int world_rank, device::Precision precision,
                      const plan::Layout& layout = {.ranks = 4, .groups = 2, .degree = 2}) {
    config::Config config;
    config.workload.classes = 4;
    config.workload.image_size = 32;
    config.training.batch_size = 8;
    config.run.seed = 77;
    config.data.kind = config::DataKind::synthetic;
    plan::ParallelismController controller(layout, plan::fill_nodes(4, 4));
    const plan::RankPlace place = controller.place(world_rank);
    return {
        .context = {.config = config, .controller = std::move(controller), .place = place},
        .resources = {.device = std::make_unique<RecordingDevice>(true),
                      .precision = precision,
                      .samples = {data::make_synthetic_samples(config, data::Split::training),
                                  data::make_synthetic_samples(config, data::Split::validation)}}};
}

TEST(Model, RoundsToInt8WithRandomNumbersOfItsModelRankAndNodes) {
    const RankOfRun rank = rank_of_run(3, {.int8 = true});
    const Model model = rank.make_model();
    const std::vector<KernelOptions> convolutions = convolutions_of(rank);
    ASSERT_EQ(convolutions.size(), 53u) << "of ResNet-50";
    std::uint32_t next_node = 0;
    for (const KernelOptions& options : convolutions) {
        EXPECT_TRUE(options.int8);
        EXPECT_EQ(options.mode, device::Mode::training);
        EXPECT_EQ(options.rounding.seed, 77u);
        EXPECT_EQ(options.rounding.model, 1u);
        EXPECT_EQ(options.rounding.rank, 1u);
        EXPECT_GE(options.rounding.node, next_node) << "each node has its own";
        next_node = options.rounding.node + 1;
    }
}

TEST(Model, RoundsToInt8WithOtherRandomNumbersInEachShardAndStage) {
    const plan::Layout in_shards{.ranks = 4, .groups = 1, .degree = 4, .shards = 2};
    const plan::Layout in_stages{.ranks = 4, .groups = 1, .degree = 4, .stages = 2};
    for (const plan::Layout& layout : {in_shards, in_stages}) {
        for (const int group_rank : {0, 1, 2, 3}) {
            const RankOfRun rank = rank_of_run(group_rank, {.int8 = true}, layout);
            const Model model = rank.make_model();
            const std::vector<KernelOptions> convolutions = convolutions_of(rank);
            ASSERT_FALSE(convolutions.empty());
            for (const KernelOptions& options : convolutions) {
                EXPECT_TRUE(options.int8);
                EXPECT_EQ(options.rounding.rank, static_cast<std::uint32_t>(group_rank));
                EXPECT_EQ(options.exchange != nullptr, layout.shards > 1);
            }
        }
    }
}

/// Otherwise the first step would start from weights that fp16 cannot store.
TEST(Model, StartsFromWeightsInFp16IfThereAreNoMasterWeights) {
    const auto others_than_fp16 = [](device::Precision precision, bool inherits = false) {
        const RankOfRun rank = rank_of_run(0, precision);
        Model model = rank.make_model();
        if (inherits) {
            const RankOfRun other = rank_of_run(2, {});
            Model parent = other.make_model();
            model.write_initial(morphs::read_weights(parent.graph(), parent.store()));
        }
        const std::vector<float> values = model.store().read(model.store().parameters());
        EXPECT_GT(values.size(), 20'000'000u);
        return std::ranges::count_if(
            values, [](float value) { return tensor::from_f16(tensor::to_f16(value)) != value; });
    };
    EXPECT_EQ(others_than_fp16({.is_pure = true}), 0);
    EXPECT_GT(others_than_fp16({}), 1'000'000);
    EXPECT_EQ(others_than_fp16({.is_pure = true}, true), 0);
    EXPECT_GT(others_than_fp16({}, true), 1'000'000);
}

TEST(Model, EvaluatesInFp32IfItTrainsInInt8) {
    const RankOfRun rank = rank_of_run(0, {.int8 = true});
    Model model = rank.make_model();
    static_cast<RecordingDevice&>(*rank.resources.device).forget_builds();
    const auto alone = comm::make_self_communicator();
    predict(rank.context, rank.resources, {model.store(), model.edits()},
            rank.resources.samples.validation, *alone);
    const std::vector<KernelOptions> convolutions = convolutions_of(rank);
    ASSERT_EQ(convolutions.size(), 53u);
    for (const KernelOptions& options : convolutions) EXPECT_FALSE(options.int8);
}

}  // namespace
}  // namespace hpcai::group
