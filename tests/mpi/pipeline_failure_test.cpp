// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <stdexcept>

#include <gmock/gmock.h>

#include "pipelined_model.hpp"

/// Ranks of a pipeline that fail or have wrong values.
namespace hpcai::training {
namespace {

using mpi_tests::world;

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
            // No stage has completed the step.
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

/// At that time, messages from other stages to every stage are pending.
TEST(Pipeline, ARankThatFailsInsideAStepFreesTheOthers) {
    for (const int stages : stage_counts()) {
        const auto group = world().everyone.split(0, world().everyone.rank());
        PipelinedModel model(*group, {.stages = stages, .micro_batches = 2});
        ToySource source = model.source();
        const bool is_last_replica = group->rank() + 1 == model.layout.data_degree();
        if (is_last_replica) source = ToySource(1, kSteps);
        try {
            model.trainer->train_epoch(0, source, [](const StepReport&) {});
            ADD_FAILURE() << "nothing was thrown";
        } catch (const Error& error) {
            EXPECT_EQ(error.code(), ExitCode::internal);
            EXPECT_THAT(error.what(), testing::HasSubstr("bytes of"));
        }
    }
}

/// At that time, all-reduces of the failing rank are in progress, and others wait for its
/// statistics.
TEST(Pipeline, ARankThatFailsInABackwardPassFreesThoseThatTakeStatisticsWithIt) {
    const int ranks = world().everyone.size();
    if (ranks == 1) GTEST_SKIP() << "of some ranks";
    constexpr int kLastSumOfSecondStep = 8;  // two normalizations, forward and backward
    for (const bool shares_batch_alone : {true, false}) {
        const auto group = world().everyone.split(0, world().everyone.rank());
        int sums = 0;
        const auto fail = [&] {
            if (++sums == kLastSumOfSecondStep && group->rank() + 1 == ranks) {
                throw std::runtime_error("out of memory");
            }
        };
        PipelinedModel model(*group, {.statistics_ranks = ranks,
                                      .shares_batch_alone = shares_batch_alone,
                                      .before_statistics = fail});
        ToySource source = model.source();
        try {
            model.trainer->train_epoch(0, source, [](const StepReport&) {});
            ADD_FAILURE() << "nothing was thrown";
        } catch (const std::exception& error) {
            EXPECT_STREQ(error.what(), "batch_norm_relu, input_gradient pass: out of memory");
        }
    }
}

TEST(Pipeline, ARankThatAbortsBetweenStepsFreesItsStageAndTheOthers) {
    const int ranks = world().everyone.size();
    if (ranks == 1) GTEST_SKIP() << "of some ranks";
    for (const int stages : stage_counts()) {
        for (const int failing : {0, ranks - 1}) {
            const auto group = world().everyone.split(0, world().everyone.rank());
            PipelinedModel model(*group, {.stages = stages, .micro_batches = 2});
            ToySource source = model.source();
            const auto abort = [&](const StepReport& step) {
                if (step.step == 2 && group->rank() == failing) {
                    throw std::runtime_error("a device is lost");
                }
            };
            try {
                model.trainer->train_epoch(0, source, abort);
                ADD_FAILURE() << "nothing was thrown";
            } catch (const std::exception& error) {
                EXPECT_STREQ(error.what(), "a device is lost");
            }
        }
    }
}

}  // namespace
}  // namespace hpcai::training
