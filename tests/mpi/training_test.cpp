// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <hpcai/training/predict.hpp>

#include "training/networks.hpp"
#include "world.hpp"

/// One model trained by all ranks of the world.
namespace hpcai::training {
namespace {

using mpi_tests::world;

constexpr int kToyBatch = 16;   // of the model
constexpr int kStatistics = 4;  // samples that share statistics, for any number of ranks
constexpr std::int64_t kSteps = 4;

struct Trained {
    std::vector<double> losses;    // of the model's whole batch, by step
    std::vector<float> gradients;  // of the last step
    std::vector<float> parameters;
    std::vector<float> statistics;
    double mean_loss = 0;
};

std::vector<float> copy_of(std::span<const float> values) {
    return {values.begin(), values.end()};
}

config::Config configuration() {
    config::Config config = small_config(kToyBatch, 1);
    config.training.batch_norm_samples = kStatistics;
    return config;
}

ToySource source_for(const comm::Communicator& group) {
    const std::int64_t rows = kToyBatch / group.size();
    ToySource source(rows, kSteps);
    source.set_place(group.rank() * rows, kToyBatch);
    return source;
}

Trained train(comm::Communicator& group, const config::Config& config,
              std::unique_ptr<comm::GradientReducer> sums = nullptr) {
    SmallModel model(config, kSteps, group, small_graph(kToyBatch / group.size(), kStatistics),
                     device::make_cpu_device({}), tensor::DType::f32, std::move(sums));
    ToySource source = source_for(group);
    Trained result;
    const EpochReport report = model.trainer->train_epoch(
        0, source, [&](const StepReport& step) { result.losses.push_back(step.loss); });
    result.mean_loss = report.mean_loss;
    group.all_reduce_sum(result.losses);
    for (double& loss : result.losses) loss /= group.size();
    result.gradients = copy_of(model.store.gradients());
    result.parameters = copy_of(model.store.parameters());
    model.trainer->average_statistics();
    result.statistics = copy_of(model.store.statistics());
    return result;
}

/// Returns the largest difference relative to the length of `want`.
double difference(const std::vector<float>& got, const std::vector<float>& want) {
    EXPECT_EQ(got.size(), want.size());
    double largest = 0, length = 0;
    for (std::size_t i = 0; i < want.size(); ++i) {
        largest = std::max(largest, std::abs(static_cast<double>(got[i]) - want[i]));
        length += static_cast<double>(want[i]) * want[i];
    }
    return largest / std::sqrt(length);
}

void expect_same_training(const Trained& got, const Trained& want) {
    // fp32 sums in another order, over four steps
    EXPECT_LT(difference(got.gradients, want.gradients), 1e-5);
    EXPECT_LT(difference(got.parameters, want.parameters), 1e-6);
    EXPECT_LT(difference(got.statistics, want.statistics), 1e-6);
    ASSERT_EQ(got.losses.size(), want.losses.size());
    for (std::size_t step = 0; step < want.losses.size(); ++step) {
        EXPECT_NEAR(got.losses[step], want.losses[step], 1e-6) << step;
    }
    EXPECT_NEAR(got.mean_loss, want.mean_loss, 1e-6);
}

TEST(TrainingOverMpi, IsTheTrainingOfOneRankUpToRounding) {
    const auto self = comm::make_self_communicator();
    const Trained alone = train(*self, configuration());
    expect_same_training(train(world().everyone, configuration()), alone);
    config::Config other_buckets = configuration();
    other_buckets.communication.bucket_mib = 0.001;
    expect_same_training(train(world().everyone, other_buckets), alone);
    other_buckets.communication.overlap = false;
    expect_same_training(train(world().everyone, other_buckets), alone);
}

/// Returns a reducer with `ranks_per_node` as communication.ranks_per_node.
std::unique_ptr<comm::GradientReducer> exchanging(comm::AllReduceAlgorithm algorithm,
                                                  comm::WireFormat format, int ranks_per_node) {
    comm::Communicator& group = world().everyone;
    comm::AllReduceOptions options{algorithm, format, {}, {}};
    for (int rank = 0; rank < group.size(); ++rank) {
        options.node_of_rank.push_back(rank / ranks_per_node);
    }
    return comm::make_point_to_point_reducer(group, nullptr, options);
}

TEST(TrainingOverMpi, IsTheSameUpToRoundingInEveryWayToSumAndTheSameBitsOnAllRanks) {
    using enum comm::WireFormat;
    comm::Communicator& group = world().everyone;
    config::Config config = configuration();
    config.communication.bucket_mib = 0.001;  // several buckets in progress
    const Trained want = train(group, config);
    for (const auto algorithm :
         {comm::AllReduceAlgorithm::all_reduce, comm::AllReduceAlgorithm::torus_2d,
          comm::AllReduceAlgorithm::hierarchical, comm::AllReduceAlgorithm::native}) {
        for (const auto format : {fp32, bf16, fp16, int8}) {
            if (algorithm == comm::AllReduceAlgorithm::native && format != fp32) continue;
            SCOPED_TRACE(fmt::format("{} in {}", comm::name_of(algorithm), comm::name_of(format)));
            const Trained got = train(group, config, exchanging(algorithm, format, 3));
            if (format == fp32) {
                expect_same_training(got, want);
            } else {
                // int8 rounds a gradient to 1/254 of its block's largest number, over four steps
                EXPECT_LT(difference(got.parameters, want.parameters), 1e-2);
                EXPECT_NEAR(got.mean_loss, want.mean_loss, 2e-2);
            }
            std::vector<float> first = got.parameters;
            group.broadcast(std::as_writable_bytes(std::span(first)), 0);
            EXPECT_EQ(got.parameters, first);
            EXPECT_EQ(train(group, config, exchanging(algorithm, format, 3)).parameters,
                      got.parameters)
                << "another run, other bits";
        }
    }
}

TEST(TrainingOverMpi, EndsWithTheSameBitsOnAllRanksAndInEveryRun) {
    comm::Communicator& group = world().everyone;
    const Trained mine = train(group, configuration());
    std::vector<float> first = mine.parameters;
    group.broadcast(std::as_writable_bytes(std::span(first)), 0);
    EXPECT_EQ(mine.parameters, first);
    first = mine.statistics;
    group.broadcast(std::as_writable_bytes(std::span(first)), 0);
    EXPECT_EQ(mine.statistics, first);
    EXPECT_EQ(train(group, configuration()).parameters, mine.parameters);
}

TEST(TrainingOverMpi, ARankWhoseDataFailStopsAllRanksAfterTheSameStep) {
    for (int failing_rank = 0; failing_rank < world().everyone.size(); ++failing_rank) {
        const auto group = world().everyone.split(0, world().everyone.rank());
        SmallModel model(configuration(), kSteps, *group,
                         small_graph(kToyBatch / group->size(), kStatistics));
        ToySource source = source_for(*group);
        if (group->rank() == failing_rank) {
            source.set_failure(2, [&] {
                throw Error(ExitCode::data, fmt::format("{}.jpg: is cut", failing_rank));
            });
        }
        std::int64_t steps = 0;
        try {
            model.trainer->train_epoch(0, source, [&](const StepReport&) { ++steps; });
            ADD_FAILURE() << "nothing was thrown";
        } catch (const Error& error) {
            EXPECT_EQ(error.code(), ExitCode::data);
            EXPECT_EQ(error.what(), fmt::format("{}.jpg: is cut", failing_rank));
        }
        EXPECT_EQ(steps, 2);
        world().everyone.barrier();  // no rank waits elsewhere
    }
}

/// Returns the steps done if a value of one rank's `parameter` was NaN after the first step.
std::int64_t steps_until_divergence(bool in_first_parameter) {
    const auto group = world().everyone.split(0, world().everyone.rank());
    SmallModel model(configuration(), kSteps, *group,
                     small_graph(kToyBatch / group->size(), kStatistics));
    ToySource source = source_for(*group);
    const auto last = static_cast<graph::ParameterId>(model.store.ranges().size() - 1);
    std::int64_t steps = 0;
    const auto spoil = [&](const StepReport&) {
        const bool mine = group->rank() + 1 == group->size();
        if (++steps == 1 && mine) model.store.parameter(in_first_parameter ? 0 : last)[0] = NAN;
    };
    EXPECT_THROW(model.trainer->train_epoch(0, source, spoil), Error);
    world().everyone.barrier();
    return steps;
}

TEST(TrainingOverMpi, NumbersThatAreNotFiniteOnOneRankStopAllRanksAfterTheSameStep) {
    EXPECT_EQ(steps_until_divergence(false), 1);
    EXPECT_EQ(steps_until_divergence(true), 1);
}

TEST(TrainingOverMpi, ADivergedTrainingEndsOnAllRanksWhichThenCanTrainAnotherModel) {
    const auto group = world().everyone.split(0, world().everyone.rank());
    config::Config config = configuration();
    config.training.learning_rate = 1e30;
    EXPECT_THROW(train(*group, config), DivergedTraining);
    const Trained want = train(world().everyone, configuration());
    EXPECT_EQ(train(*group, configuration()).parameters, want.parameters);
}

TEST(TrainingOverMpi, GathersPredictionsInTheOrderOfRanks) {
    comm::Communicator& group = world().everyone;
    Predictions mine;  // rank r has r samples of two classes
    for (int sample = 0; sample < group.rank(); ++sample) {
        mine.labels.push_back(10 * group.rank() + sample);
        mine.outputs.insert(mine.outputs.end(),
                            {static_cast<float>(group.rank()), static_cast<float>(sample)});
    }
    const Predictions all = gather(group, mine);
    Predictions expected;
    for (int rank = 0; group.rank() == 0 && rank < group.size(); ++rank) {
        for (int sample = 0; sample < rank; ++sample) {
            expected.labels.push_back(10 * rank + sample);
            expected.outputs.insert(expected.outputs.end(),
                                    {static_cast<float>(rank), static_cast<float>(sample)});
        }
    }
    EXPECT_EQ(all.labels, expected.labels);
    EXPECT_EQ(all.outputs, expected.outputs);
}

}  // namespace
}  // namespace hpcai::training
