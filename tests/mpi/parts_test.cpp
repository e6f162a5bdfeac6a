// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <stdexcept>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "pipelined_model.hpp"

/// One model whose channels are divided among ranks of the world, also with stages and replicas,
/// compared with one rank with the same micro-batches.
namespace hpcai::training {
namespace {

using mpi_tests::world;

constexpr int kMaxParts = 8;

/// Returns a graph with convolutions of both kinds, one in a residual branch, and eight classes,
/// three of which occur.
graph::Graph parts_graph(std::int64_t batch, std::int64_t statistics_samples) {
    graph::GraphMaker make{.graph = {}, .statistics_samples = statistics_samples};
    graph::ValueId x = make.convolution("conv", make.images({batch, kSide, kSide, 3}), 16, 3);
    x = make.max_pool("pool", make.relu("relu", make.norm("bn", x)));
    x = graph::bottleneck(make, "a", x, 8, 1);
    return make.finish(graph::bottleneck(make, "b", x, 12, 2), kMaxParts);
}

/// Returns ways to divide the ranks of the world among stages, shards and replicas.
std::vector<Shape> shapes() {
    std::vector<Shape> all;
    const int ranks = world().everyone.size();
    for (int parts = 2; parts <= std::min(ranks, kMaxParts); ++parts) {
        for (int stages = 1; stages * parts <= ranks; ++stages) {
            if (ranks % (stages * parts) != 0) continue;
            const bool shares_batch = kBatch % (2 * ranks / (stages * parts)) == 0;
            if (!shares_batch) continue;
            Shape shape{.stages = stages, .micro_batches = 2};
            shape.shards = parts;
            shape.graph = parts_graph;
            all.push_back(shape);
        }
    }
    return all;
}

int data_degree_of(const Shape& shape) {
    return world().everyone.size() / (shape.stages * shape.shards);
}

std::string name_of(const Shape& shape) {
    return fmt::format("{} stages x {} replicas x {} shards", shape.stages, data_degree_of(shape),
                       shape.shards);
}

TEST(Parts, AreTheTrainingOfOneRankWithTheSameMicroBatchesUpToRounding) {
    for (Shape shape : shapes()) {
        for (const int micro_batches : {1, 2}) {
            SCOPED_TRACE(fmt::format("{}, {} micro-batches", name_of(shape), micro_batches));
            shape.micro_batches = micro_batches;
            const Trained got = train(world().everyone, shape);
            const int data_degree = data_degree_of(shape);
            expect_same_training(got, train_alone(shape, data_degree), 1e-5);  // fp32, four steps
            // Replicas average the gradients that one rank computes one after the other.
            Shape shared = shape;
            shared.stages = shared.shards = 1;
            const Trained replicas = train(*split_in_runs(data_degree), shared);
            expect_same_training(got, replicas, 1e-5);
            EXPECT_LT(difference(got.statistics, replicas.statistics), 1e-5);
        }
    }
}

TEST(Parts, TrainOnTheSamplesThatTheFirstOneReads) {
    comm::Communicator& group = world().everyone;
    for (const Shape& shape : shapes()) {
        SCOPED_TRACE(name_of(shape));
        const Trained want = train(group, shape);
        PipelinedModel model(group, shape);
        ToySource source = model.source();
        if (model.layout.partition_of(group.rank()) != 0) source.set_place(kBatch, kBatch);
        const Trained got = model.train(source);
        EXPECT_EQ(got.parameters, want.parameters);
        EXPECT_EQ(got.losses, want.losses);
    }
}

TEST(Parts, TakeStatisticsOverTheReplicasOfTheSamePart) {
    for (Shape shape : shapes()) {
        SCOPED_TRACE(name_of(shape));
        if (data_degree_of(shape) == 1) continue;
        shape.micro_batches = 1;
        const Trained alone = train_alone(shape);  // with the statistics of the whole batch
        shape.statistics_ranks = data_degree_of(shape);
        const Trained got = train(world().everyone, shape);
        expect_same_training(got, alone, 1e-5);  // fp32, four steps
        EXPECT_LT(difference(got.statistics, alone.statistics), 1e-5);
    }
}

TEST(Parts, ServeEveryOptimizer) {
    using config::Optimizer;
    for (Shape shape : shapes()) {
        for (const auto optimizer : {Optimizer::lars, Optimizer::lamb, Optimizer::adam,
                                     Optimizer::adamw, Optimizer::adagrad}) {
            SCOPED_TRACE(
                fmt::format("{}, optimizer {}", name_of(shape), static_cast<int>(optimizer)));
            shape.optimizer = optimizer;
            const Trained want = train_alone(shape, data_degree_of(shape));
            // LAMB's steps have the same length for small gradients, whose rounding has more
            // effect.
            expect_same_training(train(world().everyone, shape), want, 2e-3);
        }
    }
}

TEST(Parts, EndWithTheSameBitsInEveryRunAndOnEveryRank) {
    comm::Communicator& group = world().everyone;
    for (const Shape& shape : shapes()) {
        SCOPED_TRACE(name_of(shape));
        const Trained want = train(group, shape), again = train(group, shape);
        EXPECT_EQ(again.parameters, want.parameters);
        EXPECT_EQ(again.statistics, want.statistics);
        EXPECT_THAT(want.hashes, testing::Each(want.hashes.front())) << "another rank, other bits";
    }
}

TEST(Parts, CountTheBytesOfTheirExchanges) {
    for (const Shape& shape : shapes()) {
        SCOPED_TRACE(name_of(shape));
        PipelinedModel model(world().everyone, shape);
        const std::int64_t bytes = graph::exchanged_bytes(model.mine.graph, sizeof(float)).sent;
        const bool hands_on = model.layout.partition_of(world().everyone.rank()) == 0;
        constexpr std::int64_t kSampleBytes = kSide * kSide * 3 + 4;  // including the label
        const std::int64_t samples =
            hands_on ? (shape.shards - 1) * kBatch / data_degree_of(shape) * kSampleBytes : 0;
        const MessageAccounting messages = model.train().messages;
        EXPECT_EQ(messages.steps, kSteps);
        EXPECT_EQ(messages.shards.bytes_sent, kSteps * (shape.micro_batches * bytes + samples));
        const bool waits = bytes > 0 || hands_on;  // a small stage may exchange nothing
        EXPECT_TRUE(!waits || messages.shards.wait_seconds > 0);
    }
}

/// Rank 0 is a shard that reads samples for others; rank 1 is usually one of those others.
TEST(Parts, OfWhichOneHasNoDataStopAllRanksAfterTheSameStep) {
    for (const Shape& shape : shapes()) {
        for (const int failing : {0, 1}) {
            const auto group = world().everyone.split(0, world().everyone.rank());
            PipelinedModel model(*group, shape);
            ToySource source = model.source();
            if (group->rank() == failing) {
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
            EXPECT_EQ(steps, 2) << "rank " << failing << " has none";
        }
    }
}

TEST(Parts, WithNumbersThatAreNotFiniteStopAllAfterTheSameStep) {
    const int ranks = world().everyone.size();
    for (const Shape& shape : shapes()) {
        const auto group = world().everyone.split(0, world().everyone.rank());
        PipelinedModel model(*group, shape);
        ToySource source = model.source();
        std::int64_t steps = 0;
        const auto spoil = [&](const StepReport&) {
            if (++steps == 1 && group->rank() == ranks - 1) model.store.parameter(0)[0] = NAN;
        };
        try {
            model.trainer->train_epoch(0, source, spoil);
            ADD_FAILURE() << "nothing was thrown";
        } catch (const Error& error) {
            EXPECT_THAT(error.what(),
                        testing::StartsWith(data_degree_of(shape) > 1 ? "replica audit"
                                                                      : "training diverged"));
        }
        EXPECT_EQ(steps, 1);
        // No shard has completed the step.
        if (group->rank() != ranks - 1) {
            EXPECT_TRUE(all_finite(model.store.read(model.store.parameters())));
        }
    }
}

TEST(Parts, OfReplicasAreAuditedWithTheSamePartOnly) {
    const int ranks = world().everyone.size();
    for (const Shape& shape : shapes()) {
        if (data_degree_of(shape) == 1) continue;
        SCOPED_TRACE(name_of(shape));
        const auto group = world().everyone.split(0, world().everyone.rank());
        PipelinedModel model(*group, shape, 2);
        ToySource source = model.source();
        const auto strike = [&](const StepReport& step) {
            if (step.step == 1 && group->rank() == ranks - 1) model.store.parameter(0)[0] += 1.0f;
        };
        try {
            model.trainer->train_epoch(0, source, strike);
            ADD_FAILURE() << "nothing was thrown";
        } catch (const ReplicaDivergence& error) {
            const std::vector<int>& named = error.divergence().group_ranks;
            EXPECT_EQ(error.divergence().step, 2);
            EXPECT_EQ(error.divergence().ranks, data_degree_of(shape));
            EXPECT_THAT(named, testing::Contains(ranks - 1));
            for (const int rank : named) {
                EXPECT_EQ(model.layout.partition_of(rank), model.layout.partition_of(ranks - 1));
            }
        }
    }
}

/// At that time, the other ranks wait for its channels.
TEST(Parts, OfWhichOneFailsInsideAStepFreeTheOthers) {
    for (const Shape& shape : shapes()) {
        const auto group = world().everyone.split(0, world().everyone.rank());
        PipelinedModel model(*group, shape);
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

/// At that time, all-reduces of the failing rank are in progress, and others wait for its
/// statistics, its channels, or ranks that wait for these.
TEST(Parts, OfWhichOneFailsInABackwardPassFreeTheOthers) {
    for (Shape shape : shapes()) {
        if (data_degree_of(shape) == 1) continue;
        SCOPED_TRACE(name_of(shape));
        const auto group = world().everyone.split(0, world().everyone.rank());
        shape.micro_batches = 1;
        shape.statistics_ranks = data_degree_of(shape);
        const int last_of_first_stage = group->size() / shape.stages - 1;
        int sums = 0, last_of_second_step = 0;
        shape.before_statistics = [&] {
            if (++sums == last_of_second_step && group->rank() == last_of_first_stage) {
                throw std::runtime_error("out of memory");
            }
        };
        PipelinedModel model(*group, shape);
        const std::size_t norms = model.mine.graph.statistics().size();
        last_of_second_step = 2 * 2 * static_cast<int>(norms);  // forward and backward
        ToySource source = model.source();
        try {
            model.trainer->train_epoch(0, source, [](const StepReport&) {});
            ADD_FAILURE() << "nothing was thrown";
        } catch (const std::exception& error) {
            EXPECT_STREQ(error.what(), "batch_norm_relu, input_gradient pass: out of memory");
        }
    }
}

TEST(Parts, OfWhichOneAbortsBetweenStepsFreeTheOthers) {
    const int ranks = world().everyone.size();
    for (const Shape& shape : shapes()) {
        for (const int failing : {0, ranks - 1}) {
            const auto group = world().everyone.split(0, world().everyone.rank());
            PipelinedModel model(*group, shape);
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
