// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "launch/rank_facts.hpp"

namespace hpcai::launch {
namespace {

using Ranks = std::vector<context::RankFacts>;

const context::RankFacts kPromises{2, "cpu", "", {true, true, "one processor"}};
const context::RankFacts kAlsoPromises{2, "cpu", "", {true, true, "another processor"}};
const context::RankFacts kForItsThreads{2, "paper", "", {true, false, "paper"}};
const context::RankFacts kPromisesNothing{2, "stone", "", {}};

TEST(DescribeDeterminism, ReportsThatNothingWasRequested) {
    const DeterminismRecord record = describe_determinism(false, Ranks{kPromises}, 1);
    EXPECT_FALSE(record.requested);
    EXPECT_EQ(record.guarantee, "none: not requested by run.deterministic");
    EXPECT_EQ(record.conditions, "");
}

TEST(DescribeDeterminism, PromisesWhatEveryDevicePromises) {
    const DeterminismRecord all =
        describe_determinism(true, Ranks{kPromises, kPromises, kAlsoPromises}, 1);
    EXPECT_TRUE(all.requested);
    EXPECT_NE(all.guarantee.find("; device.threads, bagging.M"), std::string::npos);
    EXPECT_TRUE(all.conditions.starts_with("another processor and one processor; "))
        << all.conditions;
    const DeterminismRecord some = describe_determinism(true, Ranks{kPromises, kForItsThreads}, 1);
    EXPECT_EQ(some.guarantee.find("device.threads"), std::string::npos) << some.guarantee;
    EXPECT_NE(some.guarantee.find("; bagging.M"), std::string::npos) << some.guarantee;
}

TEST(DescribeDeterminism, ReportsItWhereADeviceCannotPromise) {
    const DeterminismRecord record =
        describe_determinism(true, Ranks{kPromises, kPromisesNothing}, 2);
    EXPECT_TRUE(record.requested);
    EXPECT_TRUE(record.guarantee.starts_with("none: ")) << record.guarantee;
    EXPECT_EQ(record.conditions, "");
}

TEST(DescribeDeterminism, NamesMpiOnlyWhereRanksAddUpGradients) {
    const auto conditions = [](int degree) {
        return describe_determinism(true, Ranks{kPromises, kPromises}, degree).conditions;
    };
    EXPECT_EQ(conditions(1).find("MPI"), std::string::npos);
    EXPECT_NE(conditions(2).find("MPI"), std::string::npos);
}

}  // namespace
}  // namespace hpcai::launch
