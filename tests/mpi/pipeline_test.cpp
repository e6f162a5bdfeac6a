// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "pipelined_model.hpp"

/// One model trained in stages by all ranks of the world, compared with one rank with the same
/// micro-batches.
namespace hpcai::training {
namespace {

using config::PipelineSchedule;
using mpi_tests::world;
using tensor::DType;

TEST(Pipeline, IsTheTrainingOfOneRankWithTheSameMicroBatchesUpToRounding) {
    comm::Communicator& group = world().everyone;
    for (const int stages : stage_counts()) {
        for (const int micro_batches : {1, 2, 4}) {
            SCOPED_TRACE(fmt::format("{} stages, {} micro-batches", stages, micro_batches));
            const int data_degree = group.size() / stages;
            const Trained want = train_alone({.micro_batches = micro_batches}, data_degree);
            const Trained got = train(group, {.stages = stages, .micro_batches = micro_batches});
            expect_same_training(got, want, 1e-6);  // fp32 sums in another order, over four steps
            // Replicas average the gradients that one rank computes one after the other.
            const auto replicas = split_in_runs(data_degree);
            const Trained shared = train(*replicas, {.micro_batches = micro_batches});
            expect_same_training(got, shared, 1e-6);
            EXPECT_LT(difference(got.statistics, shared.statistics), 1e-6);
        }
    }
}

TEST(Pipeline, AddsUpToAWholeBatchWhoseStatisticsSpanAsManySamples) {
    for (const int micro_batches : {2, 4}) {
        const int span = kBatch / micro_batches;
        const auto self = comm::make_self_communicator();
        SmallModel whole(small_config(kBatch, 1), kSteps, *self, small_graph(kBatch, span));
        ToySource source(kBatch, kSteps);
        Trained want;
        const auto listen = [&](const StepReport& step) { want.losses.push_back(step.loss); };
        want.mean_loss = whole.trainer->train_epoch(0, source, listen).mean_loss;
        want.parameters = whole.store.read(whole.store.parameters());
        // fp32 sums in another order, over four steps
        expect_same_training(train_alone({.micro_batches = micro_batches}), want, 1e-6);
    }
}

TEST(Pipeline, TrainsWithOtherStatisticsAndOtherBitsPerNumberOfMicroBatches) {
    const Trained one = train_alone({.micro_batches = 1});
    const Trained four = train_alone({.micro_batches = 4});
    EXPECT_GT(difference(four.parameters, one.parameters), 1e-4);
}

TEST(Pipeline, EndsWithTheSameBitsInAllSchedulesAndInEveryRun) {
    comm::Communicator& group = world().everyone;
    for (const int stages : stage_counts()) {
        const Trained want = train(group, {.stages = stages, .micro_batches = 4});
        for (const PipelineSchedule schedule :
             {PipelineSchedule::gpipe, PipelineSchedule::one_forward_one_backward}) {
            const Trained got =
                train(group, {.stages = stages, .micro_batches = 4, .schedule = schedule});
            EXPECT_EQ(got.parameters, want.parameters) << stages;
            EXPECT_EQ(got.statistics, want.statistics) << stages;
        }
        EXPECT_THAT(want.hashes, testing::Each(want.hashes.front())) << "another rank, other bits";
    }
}

TEST(Pipeline, NumbersTheMicroBatchesOfItsBackwardPassesInAllSchedules) {
    comm::Communicator& group = world().everyone;
    for (const int stages : stage_counts()) {
        for (const PipelineSchedule schedule :
             {PipelineSchedule::gpipe, PipelineSchedule::one_forward_one_backward}) {
            PipelinedModel model(group,
                                 {.stages = stages, .micro_batches = 4, .schedule = schedule});
            model.train();
            EXPECT_EQ(model.networks.front()->read_step_scalars().micro_batch, 3u) << stages;
        }
    }
}

TEST(Pipeline, SumsTheGradientsOfAStageInAllWaysAndFormats) {
    comm::Communicator& group = world().everyone;
    for (const int stages : stage_counts()) {
        if (stages == group.size()) continue;
        Shape shape{.stages = stages, .micro_batches = 2};
        const Trained want = train(group, shape);
        shape.algorithm = comm::AllReduceAlgorithm::torus_2d;
        expect_same_training(train(group, shape), want, 1e-6);  // fp32 sums in another order
        shape.format = comm::WireFormat::int8;
        const Trained got = train(group, shape);
        expect_same_training(got, want, 2e-2);  // one of 127 steps of a gradient, over four steps
        EXPECT_GT(difference(got.parameters, want.parameters), 1e-6);
    }
}

TEST(Pipeline, IsTheTrainingOfTheWholeBatchWhereAllReplicasTakeStatisticsTogether) {
    comm::Communicator& group = world().everyone;
    const Trained alone = train_alone({});
    for (const int stages : stage_counts()) {
        const int replicas = group.size() / stages;
        const Shape whole{.stages = stages, .statistics_ranks = replicas};
        const Trained got = train(group, whole);
        expect_same_training(got, alone, 1e-6);  // fp32 sums in another order, over four steps
        EXPECT_LT(difference(got.statistics, alone.statistics), 1e-6);
        // All-reduces of statistics and of gradients and messages between stages run at the same
        // time.
        const Shape parts{.stages = stages, .micro_batches = 4, .statistics_ranks = replicas};
        Shape unstaged = parts;
        unstaged.stages = 1;
        expect_same_training(train(group, parts), train(*split_in_runs(replicas), unstaged), 1e-6);
    }
}

TEST(Pipeline, ServesOptimizersWithTrustRatiosAndSteps) {
    comm::Communicator& group = world().everyone;
    for (const int stages : stage_counts()) {
        for (const auto optimizer : {config::Optimizer::lars, config::Optimizer::lamb}) {
            Shape shape{.stages = stages, .micro_batches = 2, .optimizer = optimizer};
            const Trained want = train_alone(shape, group.size() / stages);
            // LAMB's steps have the same length for small gradients, whose rounding has more
            // effect.
            expect_same_training(train(group, shape), want, 1e-4);
        }
    }
}

TEST(Pipeline, SendsActivationsInTheComputeType) {
    comm::Communicator& group = world().everyone;
    if (group.size() != 2) GTEST_SKIP() << "of two ranks";
    const auto device = device::make_cpu_device({});
    if (std::ranges::count(device->compute_dtypes(), DType::bf16) == 0) GTEST_SKIP() << "no bf16";
    const Trained fp32 = train(group, {.stages = 2, .micro_batches = 2});
    const Shape half{.stages = 2, .micro_batches = 2, .compute = DType::bf16};
    const Trained bf16 = train(group, half);
    if (group.rank() == 1) {  // this rank sends no labels
        EXPECT_EQ(2 * bf16.messages.bytes_sent, fp32.messages.bytes_sent);
    }
    expect_same_training(bf16, train_alone(half), 2e-3);  // gradients summed in bf16, four steps
}

TEST(Pipeline, CountsTheBytesOfItsMessages) {
    comm::Communicator& group = world().everyone;
    if (group.size() != 2) GTEST_SKIP() << "of two ranks";
    for (const int micro_batches : {1, 4}) {
        PipelinedModel model(group, {.stages = 2, .micro_batches = micro_batches});
        const std::int64_t crossing = graph::crossing_bytes(
            graph::fuse(model.model_graph), model.slices[1].first_node, sizeof(float));
        const std::int64_t labels = group.rank() == 0 ? kBatch * sizeof(std::int32_t) : 0;
        const MessageAccounting messages = model.train().messages;
        EXPECT_EQ(messages.steps, kSteps);
        EXPECT_EQ(messages.bytes_sent, kSteps * (micro_batches * crossing + labels));
    }
}

}  // namespace
}  // namespace hpcai::training
