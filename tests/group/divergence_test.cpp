// SPDX-License-Identifier: Apache-2.0
#include "group/divergence.hpp"

#include <gtest/gtest.h>

namespace hpcai::group {
namespace {

AuditRecord audit_of(std::vector<std::string> differs, int named) {
    AuditRecord audit{3, 400, std::move(differs), {}};
    for (int rank = 0; rank < named; ++rank) audit.ranks.push_back({rank, 8 + rank, "node2"});
    return audit;
}

TEST(DescribeDivergence, NamesTheMinorityByGroupRankWorldRankAndHost) {
    EXPECT_EQ(
        describe_divergence(audit_of({"parameters", "optimizer state"}, 1), 4),
        "replica audit after step 400: parameters and optimizer state of group rank 0 (world rank "
        "8, node2) differ from those of the other 3 ranks");
}

TEST(DescribeDivergence, NamesAllRanksWhereNoMajorityAgrees) {
    EXPECT_EQ(
        describe_divergence(audit_of({"optimizer state"}, 2), 2),
        "replica audit after step 400: optimizer state differs between group rank 0 (world rank 8, "
        "node2), group rank 1 (world rank 9, node2)");
}

TEST(DescribeDivergence, StaysShortInALargeGroup) {
    const std::string text = describe_divergence(audit_of({"parameters"}, 1000), 1000);
    EXPECT_LT(text.size(), 450U);
    EXPECT_TRUE(text.ends_with("(world rank 15, node2), 992 more")) << text;
}

}  // namespace
}  // namespace hpcai::group
