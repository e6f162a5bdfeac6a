// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <memory>
#include <stdexcept>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <hpcai/comm/statistics_span.hpp>
#include <hpcai/graph/fuse_for.hpp>
#include <hpcai/graph/stages.hpp>
#include <hpcai/training/stage_parameters.hpp>

#include "training/networks.hpp"
#include "world.hpp"

/// One model trained in stages by all ranks of the world, against one rank with the same
/// micro-batches.
namespace hpcai::training {
namespace {

using config::PipelineSchedule;
using mpi_tests::world;
using tensor::DType;

constexpr int kBatch = 64;  // of the model
constexpr std::int64_t kSteps = 4;

struct Shape {
    int stages = 1;
    int micro_batches = 1;
    PipelineSchedule schedule = PipelineSchedule::one_forward_one_backward;
    DType compute = DType::f32;
    config::Optimizer optimizer = config::Optimizer::sgd;
    comm::SumAlgorithm algorithm = comm::SumAlgorithm::all_reduce;
    comm::WireFormat format = comm::WireFormat::fp32;
    int statistics_ranks = 1;
};

/// What a training leaves to compare, the same on all ranks.
struct Trained {
    std::vector<double> losses;  // of the model's whole batch, by step
    std::vector<float> parameters;
    std::vector<float> statistics;
    double mean_loss = 0;
    MessageAccounting messages;
};

/// One rank of a pipeline over all ranks of a group.
class PipelinedModel {
public:
    PipelinedModel(comm::Communicator& group, const Shape& shape, int audit_steps = 0)
        : config(small_config(kBatch, 1)),
          layout{group.size(), 1, group.size(), shape.stages, shape.micro_batches},
          device(device::make_cpu_device({})),
          model_graph(
              small_graph(layout.rows(kBatch), shape.statistics_ranks * layout.rows(kBatch))),
          model(model_graph, *device, 2),
          stages(graph::cut(graph::fuse(model_graph), shape.stages)),
          mine(stages[static_cast<std::size_t>(layout.stage_of(group.rank()))]),
          store(mine.graph, *device, 2),
          group_(group),
          replicas(group.split(layout.stage_of(group.rank()), group.rank())),
          reducer(comm::make_exchange_reducer(
              *replicas, nullptr,
              {.algorithm = shape.algorithm,
               .format = shape.format,
               .node_of_rank = std::vector<int>(static_cast<std::size_t>(replicas->size()))})),
          span(shape.statistics_ranks) {
        config.communication.bucket_mib = 1.0 / 256;  // several
        span.connect(*replicas, std::vector<int>(static_cast<std::size_t>(replicas->size())));
        config.parallel.mode = config::ParallelMode::pipeline;
        config.parallel.micro_batches = shape.micro_batches;
        config.parallel.schedule = shape.schedule;
        config.training.optimizer = shape.optimizer;
        config.run.audit_steps = audit_steps;
        initialize(model_graph, config.run.seed, 0, model);
        copy_stage(mine, model, store);
        const graph::NetworkOptions options{device::Mode::training, shape.compute, false, &span};
        networks.push_back(std::make_unique<graph::Network>(
            graph::fuse_for(mine.graph, *device, options), *device, store, options));
        const int in_flight = plan::micro_batches_in_flight(plan::pipeline_tasks(
            shape.schedule, layout.stages, layout.stage_of(group.rank()), layout.micro_batches));
        while (static_cast<int>(networks.size()) < in_flight) {
            networks.push_back(std::make_unique<graph::Network>(*networks.front(), store));
        }
        std::vector<graph::Network*> pointers;
        for (const auto& network : networks) pointers.push_back(network.get());
        share = std::make_unique<PipelineShare>(PipelineShare{layout, pointers, group, *replicas});
        trainer = std::make_unique<Trainer>(
            TrainerSetup{config, *networks.front(), kSteps, *reducer, share.get()}, *device, store,
            group);
    }

    /// Of this rank's replica.
    ToySource source() const {
        const int rows = layout.rows(kBatch) * layout.micro_batches;
        ToySource source(rows, kSteps);
        source.set_place(layout.replica_of(group_.rank()) * rows, kBatch);
        return source;
    }

    Trained train() {
        Trained result;
        ToySource batches = source();
        const EpochReport report = trainer->train_epoch(
            0, batches, [&](const StepReport& step) { result.losses.push_back(step.loss); });
        result.mean_loss = report.mean_loss;
        result.messages = trainer->messages();
        trainer->average_statistics();
        collect_stages(group_, layout, stages, store, model);
        result.parameters = model.read(model.parameters());
        result.statistics = model.read(model.statistics());
        return result;
    }

    config::Config config;
    plan::Layout layout;
    std::unique_ptr<device::Device> device;
    graph::Graph model_graph;
    graph::ParameterStore model;
    std::vector<graph::Stage> stages;
    const graph::Stage& mine;
    graph::ParameterStore store;
    comm::Communicator& group_;
    std::unique_ptr<comm::Communicator> replicas;
    std::unique_ptr<comm::GradientReducer> reducer;
    comm::StatisticsSpan span;
    std::vector<std::unique_ptr<graph::Network>> networks;
    std::unique_ptr<PipelineShare> share;
    std::unique_ptr<Trainer> trainer;
};

Trained train(comm::Communicator& group, const Shape& shape) {
    return PipelinedModel(group, shape).train();
}

/// Of one rank; the product's gradient accumulation.
Trained train_alone(Shape shape, int data_degree = 1) {
    const auto self = comm::make_self_communicator();
    shape.stages = 1;
    shape.micro_batches *= data_degree;
    return train(*self, shape);
}

/// Largest difference relative to the length of `want`.
double difference(const std::vector<float>& got, const std::vector<float>& want) {
    EXPECT_EQ(got.size(), want.size());
    double largest = 0, length = 0;
    for (std::size_t i = 0; i < want.size(); ++i) {
        largest = std::max(largest, std::abs(static_cast<double>(got[i]) - want[i]));
        length += static_cast<double>(want[i]) * want[i];
    }
    return largest / std::sqrt(length);
}

void expect_same_training(const Trained& got, const Trained& want, double tolerance) {
    EXPECT_LT(difference(got.parameters, want.parameters), tolerance);
    ASSERT_EQ(got.losses.size(), want.losses.size());
    for (std::size_t step = 0; step < want.losses.size(); ++step) {
        EXPECT_NEAR(got.losses[step], want.losses[step], 10 * tolerance) << step;
    }
    EXPECT_NEAR(got.mean_loss, want.mean_loss, 10 * tolerance);
}

/// Stages among which this world can split.
std::vector<int> stage_counts() {
    constexpr int kStagesOfModel = 5;
    std::vector<int> counts;
    for (int stages = 1; stages <= kStagesOfModel; ++stages) {
        if (world().everyone.size() % stages == 0) counts.push_back(stages);
    }
    return counts;
}

/// Of the first `ranks`, of the next, and so on.
std::unique_ptr<comm::Communicator> split_in_runs(int ranks) {
    comm::Communicator& everyone = world().everyone;
    return everyone.split(everyone.rank() / ranks, everyone.rank());
}

bool all_finite(std::span<const float> values) {
    return std::ranges::all_of(values, [](float value) { return std::isfinite(value); });
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

TEST(Pipeline, SumsTheGradientsOfAStageInAllWaysAndFormats) {
    comm::Communicator& group = world().everyone;
    for (const int stages : stage_counts()) {
        if (stages == group.size()) continue;
        Shape shape{.stages = stages, .micro_batches = 2};
        const Trained want = train(group, shape);
        shape.algorithm = comm::SumAlgorithm::torus_2d;
        expect_same_training(train(group, shape), want, 1e-6);  // fp32 sums in another order
        shape.format = comm::WireFormat::int8;
        const Trained got = train(group, shape);
        expect_same_training(got, want, 2e-2);  // one of 127 steps a gradient, over four steps
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
        // Sums of statistics, messages between stages and sums of gradients at the same time.
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
            graph::fuse(model.model_graph), model.stages[1].first_node, sizeof(float));
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
