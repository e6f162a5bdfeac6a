// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <string>

#include <gtest/gtest.h>

#include "configurations.hpp"

/// Models in stages, in shards of layers, and in both.
namespace hpcai::prediction {
namespace {

TEST(PipelineEstimate, ShowsTheStagesOfAPipeline) {
    const PlanRecord plan = estimate(staged(4, 8), {.ranks = 8, .flops_per_rank = 1e12});
    const PlanParallelRecord& pipeline = plan.parallel;
    ASSERT_EQ(pipeline.stages.size(), 4U);
    EXPECT_EQ(pipeline.micro_batch_samples, 256 / 2 / 8);
    double flops = 0, parameters = 0;
    for (const PlanStageRecord& stage : pipeline.stages) {
        flops += stage.flops_per_sample;
        parameters += static_cast<double>(stage.parameters);
        EXPECT_EQ(stage.in_flight, 4 - (&stage - pipeline.stages.data()));
    }
    EXPECT_EQ(flops, kTrainingFlops);
    EXPECT_EQ(parameters, kParameters);
    EXPECT_DOUBLE_EQ(pipeline.bubble_fraction, 3.0 / 11);
    EXPECT_LT(pipeline.largest_stage_share, 1.2 / 4);  // the division also weighs messages
    EXPECT_EQ(pipeline.stages.back().boundary_bytes, 0);
    // The largest stage's work for half of a batch, and the bubble.
    EXPECT_DOUBLE_EQ(*plan.time.step_seconds.value,
                     kTrainingFlops * 128 * pipeline.largest_stage_share * (11.0 / 8) / 1e12);
}

TEST(PipelineEstimate, ShowsTheShardsOfLayers) {
    config::Config config = official();
    config.bagging.groups = 1;
    const PlanRecord whole = estimate(config, {.ranks = 1});
    config.parallel = {.mode = config::ParallelMode::model, .micro_batches = 4};
    const PlanRecord parts = estimate(config, {.ranks = 4, .flops_per_rank = 1e12});
    EXPECT_NEAR(parts.parallel.largest_stage_share, 1.0 / 4, 1e-3);
    EXPECT_NEAR(parts.memory_per_rank.parameter_bytes, whole.memory_per_rank.parameter_bytes / 4,
                1e-3 * whole.memory_per_rank.parameter_bytes);
    EXPECT_DOUBLE_EQ(*parts.time.step_seconds.value,
                     kTrainingFlops * 256 * parts.parallel.largest_stage_share / 1e12);
    EXPECT_EQ(parts.parallel.message_bytes_per_step, 0);
    EXPECT_EQ(parts.traffic_per_rank.sent_bytes_per_step, 0);
    EXPECT_GT(parts.parallel.shard_bytes_per_step, 0);
    // Each micro-batch has a quarter of the batch and sends a quarter of the bytes.
    config.parallel.micro_batches = 1;
    EXPECT_DOUBLE_EQ(estimate(config, {.ranks = 4}).parallel.shard_bytes_per_step,
                     parts.parallel.shard_bytes_per_step);
    EXPECT_EQ(whole.parallel.shard_bytes_per_step, 0);
    EXPECT_NE(to_text(parts).find("4 of each layer"), std::string::npos);
    EXPECT_NE(to_text(parts).find("shards of one model, 4 micro-batches of 64"), std::string::npos);
    EXPECT_EQ(to_text(parts).find("bubble"), std::string::npos);
    EXPECT_NE(to_text(parts).find("none, as parallel.data_degree is 1"), std::string::npos);
    EXPECT_EQ(to_text(parts).find("payload"), std::string::npos) << "nothing is summed";
    EXPECT_EQ(parts.traffic_per_rank.gradient_bytes, 0);
}

TEST(PipelineEstimate, CountsTheBytesThatShardsExchangeAndForward) {
    config::Config config = official();
    config.bagging.groups = 1;
    config.parallel = {.mode = config::ParallelMode::model, .micro_batches = 4};
    const PlanRecord parts = estimate(config, {.ranks = 4});
    // layer2.0 gathers: a shard receives and sends three quarters of each micro-batch.
    const double gathered = 64 * 256.0 * 56 * 56 * sizeof(float);
    const double samples = 256 * (224.0 * 224 * 3 + sizeof(std::int32_t));
    EXPECT_DOUBLE_EQ(parts.memory_per_rank.exchange_bytes, 1.5 * gathered + samples);
    EXPECT_GT(parts.parallel.shard_bytes_per_step, 4 * 2 * 0.75 * gathered + 3 * samples);
}

TEST(PipelineEstimate, CountsTheBytesThatAllShardsOfANodeSendToOthers) {
    config::Config config = official();
    config.bagging.groups = 1;
    config.parallel = {.mode = config::ParallelMode::mixed, .data_degree = 2, .model_degree = 2};
    const PlanRecord plan = estimate(config, {.ranks = 4, .ranks_per_node = 2});
    const double of_one = plan.traffic_per_rank.between_nodes_bytes_per_step;
    EXPECT_GT(of_one, 0);
    EXPECT_DOUBLE_EQ(plan.traffic_per_rank.out_of_node_bytes_per_step, 2 * of_one);
    EXPECT_DOUBLE_EQ(plan.traffic_per_rank.sent_bytes_per_step, of_one);
}

TEST(PipelineEstimate, NamesTheStagesOfShardsByTheModelsNodes) {
    config::Config config = staged(2, 8);
    const PlanRecord whole = estimate(config, {.ranks = 2});
    config.parallel.mode = config::ParallelMode::mixed;
    config.parallel.model_degree = 2;
    const PlanRecord parts = estimate(config, {.ranks = 4});
    for (const std::size_t stage : {0, 1}) {
        EXPECT_EQ(parts.parallel.stages[stage].first_node, whole.parallel.stages[stage].first_node);
    }
    EXPECT_NE(to_text(parts).find("; 2 stages x 2 shards"), std::string::npos);
}

TEST(PipelineEstimate, ReportsWhichRanksOfAGroupHoldWhichShard) {
    config::Config config = staged(2, 8);
    config.parallel.mode = config::ParallelMode::mixed;
    config.parallel.model_degree = 2;
    const std::string text = to_text(estimate(config, {.ranks = 8}));
    for (const char* line : {"group_rank      stage 0, replica 0: 0 to 1, shards 0 to 1\n",
                             "stage 0, replica 1: 2 to 3, shards 0 to 1\n",
                             "stage 1, replica 1: 6 to 7, shards 0 to 1\n"}) {
        EXPECT_NE(text.find(line), std::string::npos) << text;
    }
    config::Config pipeline = staged(2, 8);
    EXPECT_NE(to_text(estimate(pipeline, {.ranks = 4})).find("stage 1, replica 0: 2\n"),
              std::string::npos);
    EXPECT_EQ(to_text(estimate(pipeline, {.ranks = 32})).find("replica"), std::string::npos)
        << "too many to be read";
}

TEST(PipelineEstimate, RejectsMoreShardsThanALayerHasChannels) {
    config::Config config = official();
    config.bagging.groups = 1;
    config.training.batch_size = 128;
    config.parallel.mode = config::ParallelMode::model;
    try {
        estimate(config, {.ranks = 128});
        ADD_FAILURE() << "it was estimated";
    } catch (const Error& error) {
        EXPECT_STREQ(
            error.what(),
            "parallel.model_degree: expected 1 to 64, the number of channels of conv1, got "
            "128");
    }
}

TEST(PipelineEstimate, CountsTheMemoryAndAllReducesOfEachStageAlone) {
    const PlanRecord whole = estimate(staged(1, 8), {.ranks = 2});
    const PlanRecord plan = estimate(staged(2, 8), {.ranks = 4});
    EXPECT_LT(plan.memory_per_rank.activation_bytes, whole.memory_per_rank.activation_bytes * 2);
    EXPECT_LT(plan.traffic_per_rank.gradient_bytes, whole.traffic_per_rank.gradient_bytes);
    // The stage with the most parameters does not have the most activations.
    EXPECT_EQ(plan.traffic_per_rank.gradient_bytes,
              static_cast<double>(4 * plan.parallel.stages[1].parameters));
    EXPECT_LT(plan.memory_per_rank.parameter_bytes, plan.traffic_per_rank.gradient_bytes);
    EXPECT_EQ(plan.traffic_per_rank.sent_bytes_per_step, plan.traffic_per_rank.gradient_bytes);
    // In addition to both parts of the all-reduce: a message from stage 0 and, with one micro-batch
    // in flight, one message back.
    EXPECT_GE(plan.memory_per_rank.exchange_bytes,
              plan.memory_per_rank.parameter_bytes + 2 * plan.parallel.stages[0].boundary_bytes);
    EXPECT_EQ(whole.memory_per_rank.gradient_bytes, 2 * whole.memory_per_rank.parameter_bytes);
    EXPECT_EQ(refusal(staged(5'000'000, 1), {.ranks = 5'000'000}), ExitCode::usage);
}

TEST(PipelineEstimate, StagesABootstrapWhereTheFirstStageReadsIt) {
    // Three groups share node 1, which has the last rank of one group and the first ranks of two.
    const EstimateRequest request{.ranks = 12, .ranks_per_node = 3, .samples = 1000};
    config::Config config = staged(4, 1);
    config.data.staging = config::Staging::training;
    config.bagging.groups = 3;
    EXPECT_EQ(estimate(config, request).staging.fullest_node_samples.value, 865);  // 1 - e^-2
    config.parallel = {};
    EXPECT_EQ(estimate(config, request).staging.fullest_node_samples.value, 950);  // 1 - e^-3
    // The first shard, on the first rank of each group, reads for all shards.
    config.parallel.mode = config::ParallelMode::model;
    EXPECT_EQ(estimate(config, request).staging.fullest_node_samples.value, 865);
}

}  // namespace
}  // namespace hpcai::prediction
