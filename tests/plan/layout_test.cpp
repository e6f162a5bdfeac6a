// SPDX-License-Identifier: Apache-2.0
#include <optional>
#include <string>

#include <gtest/gtest.h>

#include <hpcai/base/error.hpp>
#include <hpcai/plan/parallelism_controller.hpp>

namespace hpcai::plan {
namespace {

struct Request {
    std::optional<int> groups = {}, degree = {};
    int ranks = 1;
    int ranks_per_node = 1;
    int batch_size = 240;
    config::ParallelConfig parallel = {};
};

Layout layout_for(const Request& request) {
    config::BaggingConfig bagging;
    bagging.groups = request.groups;
    bagging.degree = request.degree;
    config::TrainingConfig training;
    training.batch_size = request.batch_size;
    return make_layout(bagging, training, request.parallel, request.ranks, request.ranks_per_node);
}

std::string rejection(const Request& request, ExitCode code) {
    try {
        layout_for(request);
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), code) << error.what();
        return error.what();
    }
    ADD_FAILURE() << "the layout was accepted";
    return "";
}

void expect_layout(const Request& request, int groups, int degree) {
    const Layout layout = layout_for(request);
    EXPECT_EQ(layout.ranks, request.ranks);
    EXPECT_EQ(layout.groups, groups);
    EXPECT_EQ(layout.degree, degree);
}

TEST(Layout, IsWhatTheUserSetWhenItSatisfiesEquation5) {
    expect_layout({.groups = 2, .degree = 3, .ranks = 6, .ranks_per_node = 4}, 2, 3);
}

TEST(Layout, ComputesMissingValuesByEquation5) {
    expect_layout({.groups = 4, .ranks = 12, .ranks_per_node = 8}, 4, 3);
    expect_layout({.degree = 4, .ranks = 12, .ranks_per_node = 8}, 3, 4);
}

TEST(Layout, GivesEachNodeAGroupIfNeitherIsSet) {
    expect_layout({.ranks = 64, .ranks_per_node = 8}, 8, 8);
    expect_layout({.ranks = 4, .ranks_per_node = 8}, 1, 4);
    expect_layout({.ranks = 1, .ranks_per_node = 1}, 1, 1);
}

TEST(Layout, RejectsAViolationOfEquation5WithARemedy) {
    EXPECT_EQ(rejection({.groups = 2, .degree = 3, .ranks = 4}, ExitCode::launch),
              "bagging.M=2 x bagging.P_degree=3 needs 6 ranks (eq. 5), got 4; start with `mpirun "
              "-np 6`, or set bagging.P_degree: 2");
    EXPECT_EQ(rejection({.groups = 4, .degree = 4, .ranks = 8}, ExitCode::launch),
              "bagging.M=4 x bagging.P_degree=4 needs 16 ranks (eq. 5), got 8; start with `mpirun "
              "-np 16`, or set bagging.P_degree: 2, or set bagging.M: 2");
    EXPECT_EQ(rejection({.groups = 3, .degree = 3, .ranks = 5}, ExitCode::launch),
              "bagging.M=3 x bagging.P_degree=3 needs 9 ranks (eq. 5), got 5; start with `mpirun "
              "-np 9`");
}

TEST(Layout, NamesTheNearestRankCountsWhenTheyDoNotDivide) {
    EXPECT_NE(rejection({.groups = 3, .ranks = 7}, ExitCode::launch).find("6 or 9 ranks"),
              std::string::npos);
    EXPECT_NE(rejection({.degree = 8, .ranks = 7}, ExitCode::launch).find("start with 8 ranks"),
              std::string::npos);
    const std::string both = rejection({.ranks = 10, .ranks_per_node = 4}, ExitCode::launch);
    EXPECT_NE(both.find("`auto`"), std::string::npos);
    EXPECT_NE(both.find("8 or 12 ranks"), std::string::npos);
}

TEST(Layout, DoesNotOverflowOnAbsurdNumbers) {
    EXPECT_NE(rejection({.groups = 2000000000, .degree = 2000000000, .ranks = 4}, ExitCode::launch)
                  .find("needs 4 000 000 000 000 000 000 ranks"),
              std::string::npos);
    EXPECT_NE(rejection({.groups = 2000000000, .ranks = 2147483647}, ExitCode::launch)
                  .find("2000000000 or 4000000000 ranks"),
              std::string::npos);
}

TEST(Layout, RejectsABatchThatTheRanksOfAGroupCannotShareEvenly) {
    const Request request{.groups = 1, .degree = 4, .ranks = 4, .batch_size = 30};
    EXPECT_EQ(rejection(request, ExitCode::usage),
              "training.batch_size=30 cannot be divided evenly among 4 ranks (from "
              "bagging.P_degree); set training.batch_size: 28 or 32, or change bagging.P_degree");
    rejection({.groups = 1, .ranks = 4, .batch_size = 2}, ExitCode::launch);
    rejection({.groups = 1, .ranks = 4, .batch_size = 0}, ExitCode::usage);
    rejection({.groups = 1, .ranks = 4, .batch_size = -4}, ExitCode::usage);
}

config::ParallelConfig pipeline(std::optional<int> data_degree, std::optional<int> stages,
                                int micro_batches = 1) {
    return {config::ParallelMode::pipeline, data_degree, stages, micro_batches};
}

TEST(Layout, SplitsTheRanksOfAGroupIntoStagesAndReplicas) {
    struct Case {
        config::ParallelConfig parallel;
        int stages, data_degree;
    };
    for (const auto& [parallel, stages, data_degree] :
         {Case{{}, 1, 8}, Case{pipeline({}, {}), 8, 1}, Case{pipeline({}, 4), 4, 2},
          Case{pipeline(4, {}), 2, 4}, Case{pipeline(8, 1), 1, 8}}) {
        const Layout layout = layout_for({.groups = 1, .ranks = 8, .parallel = parallel});
        EXPECT_EQ(layout.stages, stages);
        EXPECT_EQ(layout.data_degree(), data_degree);
        for (int rank = 0; rank < 8; ++rank) {
            EXPECT_EQ(layout.group_rank_of(layout.stage_of(rank), layout.replica_of(rank)), rank);
            EXPECT_EQ(layout.stage_of(rank), rank / data_degree);
        }
    }
}

config::ParallelConfig sharded(config::ParallelMode mode, std::optional<int> data_degree,
                               std::optional<int> stages, std::optional<int> shards) {
    return {.mode = mode,
            .data_degree = data_degree,
            .pipeline_degree = stages,
            .model_degree = shards};
}

TEST(Layout, SplitsTheStagesOfAGroupIntoConsecutiveShards) {
    using config::ParallelMode;
    struct Case {
        config::ParallelConfig parallel;
        int stages, data_degree, shards;
    };
    const ParallelMode model = ParallelMode::model, mixed = ParallelMode::mixed;
    for (const auto& [parallel, stages, data_degree, count] :
         {Case{sharded(model, {}, {}, {}), 1, 1, 8}, Case{sharded(model, 2, {}, {}), 1, 2, 4},
          Case{sharded(model, {}, 1, 2), 1, 4, 2}, Case{sharded(mixed, 2, 2, {}), 2, 2, 2},
          Case{sharded(mixed, {}, 2, 4), 2, 1, 4}, Case{sharded(mixed, 1, {}, 2), 4, 1, 2},
          Case{sharded(mixed, 2, 2, 2), 2, 2, 2}}) {
        const Layout layout = layout_for({.groups = 1, .ranks = 8, .parallel = parallel});
        EXPECT_EQ(layout.stages, stages);
        EXPECT_EQ(layout.data_degree(), data_degree);
        EXPECT_EQ(layout.shards, count);
        for (int rank = 0; rank < 8; ++rank) {
            const int shard = layout.model_shard_of(rank);
            EXPECT_EQ(shard, rank % count);
            EXPECT_EQ(layout.group_rank_of(layout.stage_of(rank), layout.replica_of(rank), shard),
                      rank);
            EXPECT_EQ(layout.partition_of(rank), layout.stage_of(rank) * count + shard);
        }
    }
}

TEST(Layout, RejectsMixedModeWithTooFewOrWrongDegrees) {
    using config::ParallelMode;
    EXPECT_EQ(
        rejection({.groups = 1, .ranks = 8, .parallel = sharded(ParallelMode::mixed, {}, 2, {})},
                  ExitCode::usage),
        "parallel.mode mixed: expected two or three of parallel.data_degree, "
        "parallel.pipeline_degree and parallel.model_degree, got 1");
    EXPECT_EQ(
        rejection({.groups = 1, .ranks = 8, .parallel = sharded(ParallelMode::mixed, 2, 2, 3)},
                  ExitCode::launch),
        "parallel.data_degree=2 x parallel.pipeline_degree=2 x parallel.model_degree=3 must "
        "be bagging.P_degree=8 (auto); change one of them, or set it to auto");
    EXPECT_EQ(
        rejection({.groups = 1, .ranks = 8, .parallel = sharded(ParallelMode::mixed, 3, {}, 3)},
                  ExitCode::launch),
        "the other degrees of parallel need 9 ranks of bagging.P_degree=8 (auto) and leave "
        "no rank for parallel.pipeline_degree (auto); reduce one of them, or set it to auto");
    EXPECT_EQ(
        rejection({.groups = 1, .ranks = 8, .parallel = sharded(ParallelMode::model, {}, {}, 3)},
                  ExitCode::launch),
        "parallel.data_degree=2 (auto) x parallel.pipeline_degree=1 (auto) x "
        "parallel.model_degree=3 must be bagging.P_degree=8 (auto); change one of them, or "
        "set it to auto");
    rejection({.groups = 1, .ranks = 8, .parallel = sharded(ParallelMode::model, 16, {}, {})},
              ExitCode::launch);
}

TEST(Layout, SharesABatchAmongReplicasAndMicroBatches) {
    const Layout layout =
        layout_for({.groups = 1, .ranks = 4, .batch_size = 48, .parallel = pipeline(2, 2, 6)});
    EXPECT_EQ(layout.micro_batch_size(48), 4);
    EXPECT_EQ(rejection({.groups = 1, .ranks = 4, .batch_size = 40, .parallel = pipeline(2, 2, 6)},
                        ExitCode::usage),
              "training.batch_size=40 cannot be divided evenly among 2 ranks x "
              "parallel.micro_batches=6; make it a multiple of 12");
}

TEST(Layout, RejectsDegreesThatDoNotMakeTheRanksOfAGroup) {
    EXPECT_EQ(rejection({.groups = 1, .ranks = 4, .parallel = pipeline(3, 2)}, ExitCode::launch),
              "parallel.data_degree=3 x parallel.pipeline_degree=2 must be bagging.P_degree=4 "
              "(auto); change one of them, or set it to auto");
    rejection({.groups = 1, .ranks = 4, .parallel = pipeline({}, 3)}, ExitCode::launch);
    rejection({.groups = 1, .ranks = 4, .parallel = pipeline(3, {})}, ExitCode::launch);
    rejection({.groups = 1, .ranks = 4, .parallel = pipeline(8, {})}, ExitCode::launch);
    rejection({.groups = 1, .ranks = 4, .parallel = pipeline({}, 8)}, ExitCode::launch);
    rejection({.groups = 1, .ranks = 4, .parallel = {.data_degree = 2}}, ExitCode::launch);
}

std::string statistics_of(int samples) {
    config::BaggingConfig bagging;
    bagging.degree = 6;
    config::TrainingConfig training;
    training.batch_size = 48;
    training.batch_norm_samples = samples;
    try {
        return std::to_string(
            statistics_ranks(training, make_layout(bagging, training, {}, 12, 6)));
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ExitCode::usage);
        return error.what();
    }
}

TEST(Layout, AcceptsBatchNormSamplesThatDivideAMicroBatchOrSpanADivisorOfTheReplicas) {
    for (const int samples : {1, 2, 4, 8}) EXPECT_EQ(statistics_of(samples), "1");
    for (const int ranks : {2, 3, 6}) EXPECT_EQ(statistics_of(8 * ranks), std::to_string(ranks));
    EXPECT_EQ(
        statistics_of(32),
        "training.batch_norm_samples: expected a divisor of the 8 samples that a rank computes "
        "at once, or k times this number, where k divides the 6 ranks that share a batch, "
        "got 32");
    for (const int samples : {0, -8, 3, 12, 96}) {
        EXPECT_NE(statistics_of(samples).find("got " + std::to_string(samples)), std::string::npos);
    }
}

TEST(Layout, IsAUsageErrorIfNoOtherNumberOfRanksWouldHelp) {
    using config::ParallelMode;
    const auto mixed = sharded(ParallelMode::mixed, 2, 2, 3);
    EXPECT_NE(rejection({.degree = 8, .ranks = 8, .parallel = mixed}, ExitCode::usage)
                  .find("must be bagging.P_degree=8; change"),
              std::string::npos);
    rejection({.degree = 4, .ranks = 4, .parallel = pipeline(8, {})}, ExitCode::usage);
    rejection({.degree = 4, .ranks = 4, .parallel = {.data_degree = 2}}, ExitCode::usage);
    // Two replicas remain two replicas for any number of stages.
    rejection({.groups = 1, .ranks = 4, .batch_size = 3, .parallel = pipeline(2, {})},
              ExitCode::usage);
    rejection({.groups = 1, .ranks = 4, .batch_size = 3, .parallel = pipeline({}, 2)},
              ExitCode::launch);
    rejection({.groups = 1, .ranks = 4, .batch_size = 8, .parallel = pipeline({}, 2, 3)},
              ExitCode::usage);
}

TEST(Layout, UsesTheSingularForOneRank) {
    EXPECT_NE(rejection({.groups = 1, .degree = 1, .ranks = 4}, ExitCode::launch)
                  .find("needs 1 rank (eq. 5), got 4"),
              std::string::npos);
    EXPECT_NE(rejection({.groups = 3, .ranks = 1}, ExitCode::launch).find("the 1 rank (eq. 5)"),
              std::string::npos);
}

TEST(Layout, RejectsNumbersBelowOne) {
    rejection({.groups = 0, .ranks = 4}, ExitCode::usage);
    rejection({.degree = -1, .ranks = 4}, ExitCode::usage);
    rejection({.ranks = 0}, ExitCode::launch);
    rejection({.ranks = 4, .ranks_per_node = 0}, ExitCode::launch);
}

}  // namespace
}  // namespace hpcai::plan
