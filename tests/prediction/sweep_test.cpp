// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <sstream>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <hpcai/records/json.hpp>

#include "configurations.hpp"
#include "storage/temporary_folder.hpp"

namespace hpcai::prediction {
namespace {

TEST(Sweep, ComparesBaggingWithOneModelOnTheSameRanks) {
    config::Config config = single(8);
    EstimateRequest request = measured(2);
    const SweepRecord record = sweep(config, request, {1, 2});
    ASSERT_EQ(record.points.size(), 2U);
    const double one = 8 * kTrainingFlops;
    EXPECT_NEAR(*record.points[1].bagging_flops.value, 2 * one, 1e-6 * one);
    EXPECT_NEAR(*record.points[1].bagging_efficiency.value, 1, 1e-9);
    const double step = 1 + (1e-4 + 4 * kParameters / 1e9) * 0.05 / 0.1001;
    EXPECT_NEAR(*record.points[1].data_parallel_efficiency.value, 1 / step, 1e-5);
    EXPECT_NE(to_text(record).find("nothing was run"), std::string::npos);
    std::istringstream lines(to_text(record));
    for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80U) << line;
    EXPECT_EQ(nlohmann::json::parse(records::to_json(record))["points"][1]["ranks"], 2);
}

TEST(Sweep, GoesToAHundredThousandRanks) {
    EstimateRequest request = measured(2);
    request.machine = config::Machine{.within_node = config::Link{1e-6, 1e11},
                                      .between_nodes = config::Link{2e-6, 2.5e10}};
    const SweepRecord record = sweep(single(8), request, {1, 100'000});
    EXPECT_EQ(record.points.size(), 18U);
    EXPECT_EQ(record.points[16].ranks, 65'536);
    EXPECT_EQ(record.points.back().ranks, 100'000);
    EXPECT_NEAR(*record.points.back().bagging_efficiency.value, 1, 1e-9);
    EXPECT_LT(*record.points.back().data_parallel_efficiency.value, 1);
}

TEST(Sweep, ReportsWhereRanksMakeNoWholeModels) {
    config::Config config = single(8);
    config.bagging.degree = 2;
    const SweepRecord record = sweep(config, measured(2), {1, 2});
    EXPECT_NE(record.points[0].bagging_flops.reason.find("P_degree 2 does not divide"),
              std::string::npos);
    EXPECT_TRUE(record.points[1].bagging_flops.value);
    EXPECT_NE(to_text(record).find("\nunknown: P_degree 2 does not divide 1 rank\n\nassumed\n"),
              std::string::npos)
        << to_text(record);
}

TEST(Sweep, ReportsWhyEfficienciesAreUnknown) {
    const Quantity none{std::nullopt, "one rank has no speed"};
    SweepRecord record;
    record.points = {{1, {1e9, ""}, none, {1e9, ""}, none}};
    EXPECT_NE(to_text(record).find("\nunknown: one rank has no speed\n\nassumed\n"),
              std::string::npos)
        << to_text(record);
}

TEST(Sweep, HasTheMemoryOfItsFullestNode) {
    EstimateRequest request = measured(2);
    request.ranks_per_node.reset();
    config::Config config = single(8);
    const PlanMemoryRecord one = sweep(config, request, {1, 1}).memory_per_rank;
    EXPECT_EQ(one.fullest_node_bytes, one.total_bytes);
    EXPECT_EQ(sweep(config, request, {1, 8}).memory_per_rank.fullest_node_bytes,
              2 * one.total_bytes)
        << "as measured";
    config.bagging.degree = 4;
    config.training.batch_size = 32;
    request.roofline->ranks_of_fullest_node = 1;
    EXPECT_EQ(sweep(config, request, {1, 8}).memory_per_rank.fullest_node_bytes,
              4 * one.total_bytes)
        << "a group";
}

TEST(Sweep, HasNodesOfOneGroupIfNoNodeWithSeveralRanksWasMeasuredAsAPlanHas) {
    config::Config config = single(8);
    config.bagging.degree = 2;
    EstimateRequest request = measured(1);
    request.ranks_per_node.reset();
    request.machine = config::Machine{.within_node = config::Link{1e-6, 1e11},
                                      .between_nodes = config::Link{1, 1e6}};
    const SweepPoint assumed = sweep(config, request, {2, 2}).points[0];
    request.ranks_per_node = 2;
    EXPECT_EQ(assumed.bagging_flops.value,
              sweep(config, request, {2, 2}).points[0].bagging_flops.value);
    request.ranks_per_node = 1;
    EXPECT_LT(*sweep(config, request, {2, 2}).points[0].bagging_flops.value,
              *assumed.bagging_flops.value / 2);
}

TEST(Sweep, RejectsAnInvalidRange) {
    for (const SweepRange range : {SweepRange{0, 4}, {4, 2}, {1, 2'000'000}}) {
        storage::error_of(ExitCode::usage, [&] { sweep(single(8), measured(2), range); });
    }
    EstimateRequest request{.ranks = 2};
    storage::error_of(ExitCode::usage, [&] { sweep(single(8), request, {1, 2}); });
}

}  // namespace
}  // namespace hpcai::prediction
