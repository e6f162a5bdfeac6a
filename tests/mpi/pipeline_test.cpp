// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "pipelined_model.hpp"

/// One model trained in stages by all ranks of the world, against one rank with the same
/// micro-batches.
namespace hpcai::training {
namespace {

using config::PipelineSchedule;
using mpi_tests::world;
using tensor::DType;

/// Stages among which this world can split.
std::vector<int> stage_counts() {
    constexpr int kStagesOfModel = 5;
    std::vector<int> counts;
    for (int stages = 1; stages <= kStagesOfModel; ++stages) {
        if (world().everyone.size() % stages == 0) counts.push_back(stages);
    }
    return counts;
}

TEST(Pipeline, IsTheTrainingOfOneRankWithTheSameMicroBatchesUpToRounding) {
    comm::Communicator& group = world().everyone;
    for (const int stages : stage_counts()) {
        for (const int micro_batches : {1, 2, 4}) {
            SCOPED_TRACE(fmt::format("{} stages, {} micro-batches", stages, micro_batches));
            const int data_degree = group.size() / stages;
            const Trained want = train_alone({.micro_batches = micro_batches}, data_degree);
            const Trained got = train(group, {.stages = stages, .micro_batches = micro_batches});
            expect_same_training(got, want, 1e-6);  // fp32 sums in another order, over four steps
            // Replicas average what one rank does in turn.
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
        std::vector<float> first = want.parameters;
        group.broadcast(std::as_writable_bytes(std::span(first)), 0);
        EXPECT_EQ(want.parameters, first) << "another rank, other bits";
    }
}

TEST(Pipeline, ServesOptimizersWithTrustRatiosAndSteps) {
    comm::Communicator& group = world().everyone;
    for (const int stages : stage_counts()) {
        for (const auto optimizer : {config::Optimizer::lars, config::Optimizer::lamb}) {
            Shape shape{.stages = stages, .micro_batches = 2, .optimizer = optimizer};
            const Trained want = train_alone(shape, group.size() / stages);
            // A step of LAMB is as long for small gradients, whose rounding weighs more.
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
    if (group.rank() == 1) {  // which sends no labels
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

TEST(Pipeline, AFirstStageWhoseDataFailStopsAllRanksAfterTheSameStep) {
    for (const int stages : stage_counts()) {
        const auto group = world().everyone.split(0, world().everyone.rank());
        PipelinedModel model(*group, {.stages = stages, .micro_batches = 2});
        ToySource source = model.source();
        if (group->rank() == 0) {
            source.set_failure(2, [&] { throw Error(ExitCode::data, "3.jpg: is cut"); });
        }
        std::int64_t steps = 0;
        try {
            model.trainer->train_epoch(0, source, [&](const StepReport&) { ++steps; });
            ADD_FAILURE() << "nothing was thrown";
        } catch (const Error& error) {
            EXPECT_EQ(error.code(), ExitCode::data);
            EXPECT_STREQ(error.what(), "3.jpg: is cut");
        }
        EXPECT_EQ(steps, 2);
    }
}

TEST(Pipeline, NumbersThatAreNotFiniteAtOneStageStopAllAfterTheSameStep) {
    const int ranks = world().everyone.size();
    for (const int stages : stage_counts()) {
        for (const int spoiled : {0, ranks - 1}) {
            const auto group = world().everyone.split(0, world().everyone.rank());
            PipelinedModel model(*group, {.stages = stages, .micro_batches = 2});
            ToySource source = model.source();
            std::int64_t steps = 0;
            const auto spoil = [&](const StepReport&) {
                if (++steps == 1 && group->rank() == spoiled) model.store.parameter(0)[0] = NAN;
            };
            try {
                model.trainer->train_epoch(0, source, spoil);
                ADD_FAILURE() << "nothing was thrown";
            } catch (const Error& error) {
                const bool has_replicas = stages < ranks;
                EXPECT_THAT(error.what(), testing::StartsWith(has_replicas ? "replica audit"
                                                                           : "training diverged"));
            }
            EXPECT_EQ(steps, 1);
            // No stage has taken the step.
            if (group->rank() != spoiled) {
                EXPECT_TRUE(all_finite(model.store.read(model.store.parameters())));
            }
        }
    }
}

TEST(Pipeline, NamesTheRankOfAWrongBitWhateverItsStage) {
    const int ranks = world().everyone.size();
    for (const int stages : stage_counts()) {
        const int replicas = ranks / stages;
        if (replicas == 1) continue;
        for (const int wrong : {0, ranks - 1}) {
            const auto group = world().everyone.split(0, world().everyone.rank());
            PipelinedModel model(*group, {.stages = stages, .micro_batches = 2}, 2);
            ToySource source = model.source();
            const auto strike = [&](const StepReport& step) {
                if (step.step == 1 && group->rank() == wrong) model.store.parameter(0)[0] += 1.0f;
            };
            std::vector<int> named{wrong};
            if (replicas == 2)
                named = wrong == 0 ? std::vector{0, 1} : std::vector{ranks - 2, wrong};
            try {
                model.trainer->train_epoch(0, source, strike);
                ADD_FAILURE() << "nothing was thrown";
            } catch (const ReplicaDivergence& error) {
                EXPECT_EQ(error.divergence().step, 2);
                EXPECT_EQ(error.divergence().group_ranks, named);
                EXPECT_EQ(error.divergence().ranks, replicas);
            }
        }
    }
}

/// Every stage has messages of others under way then.
TEST(Pipeline, ARankThatFailsInsideAStepFreesTheOthers) {
    for (const int stages : stage_counts()) {
        const auto group = world().everyone.split(0, world().everyone.rank());
        PipelinedModel model(*group, {.stages = stages, .micro_batches = 2});
        ToySource source = model.source();
        if (group->rank() == 0) source = ToySource(1, kSteps);
        try {
            model.trainer->train_epoch(0, source, [](const StepReport&) {});
            ADD_FAILURE() << "nothing was thrown";
        } catch (const Error& error) {
            EXPECT_EQ(error.code(), ExitCode::internal);
            EXPECT_THAT(error.what(), testing::HasSubstr("bytes of"));
        }
    }
}

TEST(Pipeline, ARankThatGivesUpBetweenStepsFreesItsStageAndTheOthers) {
    const int ranks = world().everyone.size();
    if (ranks == 1) GTEST_SKIP() << "of some ranks";
    for (const int stages : stage_counts()) {
        for (const int failing : {0, ranks - 1}) {
            const auto group = world().everyone.split(0, world().everyone.rank());
            PipelinedModel model(*group, {.stages = stages, .micro_batches = 2});
            ToySource source = model.source();
            const auto give_up = [&](const StepReport& step) {
                if (step.step == 2 && group->rank() == failing) {
                    throw std::runtime_error("a device is lost");
                }
            };
            try {
                model.trainer->train_epoch(0, source, give_up);
                ADD_FAILURE() << "nothing was thrown";
            } catch (const std::exception& error) {
                EXPECT_STREQ(error.what(), "a device is lost");
            }
        }
    }
}

}  // namespace
}  // namespace hpcai::training
