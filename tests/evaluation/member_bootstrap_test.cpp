// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include <hpcai/comm/communicator.hpp>
#include <hpcai/evaluation/member_bootstrap.hpp>

#include "thread_communicator.hpp"

namespace hpcai::evaluation {
namespace {

constexpr float kUndefinedOutput = std::numeric_limits<float>::quiet_NaN();

/// One member on `samples` samples of two classes, right on the first `right` of them.
std::vector<float> member_right_on(int right, int samples) {
    std::vector<float> rows;
    for (int sample = 0; sample < samples; ++sample) {
        const float of_label = sample < right ? 0.75F : 0.25F;
        rows.push_back(of_label);
        rows.push_back(1 - of_label);
    }
    return rows;
}

std::optional<Interval> interval_of(const std::vector<std::vector<float>>& members, int samples,
                                    Vote vote = Vote::soft) {
    std::vector<float> all;
    for (const auto& member : members) all.insert(all.end(), member.begin(), member.end());
    MemberBootstrap bootstrap({static_cast<int>(members.size()), samples, 2, 5}, vote);
    EXPECT_EQ(bootstrap.reason_to_skip(), "");
    bootstrap.add(all, std::vector<std::int32_t>(static_cast<std::size_t>(samples), 0));
    return bootstrap.interval();
}

TEST(MemberBootstrap, OfOneMemberIsThatOfTheTestSamples) {
    const auto interval = interval_of({member_right_on(60, 100)}, 100);
    ASSERT_TRUE(interval);
    const double half = 1.96 * std::sqrt(0.6 * 0.4 / 100);
    EXPECT_NEAR(interval->low, 0.6 - half, 0.025);
    EXPECT_NEAR(interval->high, 0.6 + half, 0.025);
}

TEST(MemberBootstrap, IsWiderWhereTheMembersDiffer) {
    // If both are drawn, the first decides half of the samples by its confidence.
    std::vector<float> bold = member_right_on(100, 100);
    for (std::size_t at = 0; at < bold.size(); at += 2) bold[at] = 0.9F, bold[at + 1] = 0.1F;
    const auto different = interval_of({bold, member_right_on(0, 100)}, 100);
    const auto alike = interval_of({bold, bold}, 100);
    ASSERT_TRUE(different && alike);
    EXPECT_EQ(alike->low, 1);
    EXPECT_EQ(alike->high, 1);
    EXPECT_EQ(different->low, 0) << "the worse one alone is drawn in a quarter of all draws";
    EXPECT_EQ(different->high, 1);
}

TEST(MemberBootstrap, DoesNotDependOnTheChunks) {
    const std::vector<float> first = member_right_on(30, 50), second = member_right_on(40, 50);
    const auto whole = interval_of({first, second}, 50);
    MemberBootstrap bootstrap({2, 50, 2, 5}, Vote::soft);
    for (std::size_t sample = 0; sample < 50; ++sample) {
        const std::vector<float> rows{first[2 * sample], first[2 * sample + 1], second[2 * sample],
                                      second[2 * sample + 1]};
        bootstrap.add(rows, std::vector<std::int32_t>{0});
    }
    ASSERT_TRUE(whole && bootstrap.interval());
    EXPECT_EQ(bootstrap.interval()->low, whole->low);
    EXPECT_EQ(bootstrap.interval()->high, whole->high);
}

TEST(MemberBootstrap, CountsWhatIsNoNumberAsWrongAndLeavesPaddingOut) {
    for (const Vote vote : {Vote::soft, Vote::majority}) {
        MemberBootstrap bootstrap({1, 4, 2, 5}, vote);
        const std::vector<float> rows{
            kUndefinedOutput, 0.5F, kUndefinedOutput, 0.5F, 0.5F, kUndefinedOutput, 1, 0};
        bootstrap.add(rows, std::vector<std::int32_t>{0, 1, 0, kPaddingLabel});
        ASSERT_TRUE(bootstrap.interval());
        EXPECT_EQ(bootstrap.interval()->high, 0);
    }
    MemberBootstrap nobody({1, 1, 2, 5}, Vote::soft);
    nobody.add(std::vector<float>{1, 0}, std::vector<std::int32_t>{kPaddingLabel});
    EXPECT_FALSE(nobody.interval());
}

TEST(MemberBootstrap, ReportsWhenItWouldTakeTooMuchTimeOrMemory) {
    EXPECT_EQ(MemberBootstrap({2, 50000, 1000, 1}, Vote::soft).reason_to_skip(), "");
    EXPECT_NE(MemberBootstrap({64, 50000, 1000, 1}, Vote::soft).reason_to_skip(), "");
    EXPECT_NE(MemberBootstrap({64, 1, 1000000, 1}, Vote::soft).reason_to_skip(), "");
}

TEST(MemberBootstrap, OverRanksIsThatOfTheirRows) {
    const auto alone = comm::make_self_communicator();
    const std::vector<float> rows = member_right_on(30, 50);
    const std::vector<std::int32_t> labels(50, 0);
    const auto found =
        bootstrap_over_members(*alone, rows, labels, MemberBootstrap({1, 50, 2, 5}, Vote::soft));
    const auto expected = interval_of({rows}, 50);
    ASSERT_TRUE(found && expected);
    EXPECT_EQ(found->low, expected->low);
    EXPECT_EQ(found->high, expected->high);
}

TEST(MemberBootstrap, OverRanksIsThatOfAllInOnePlace) {
    const std::vector<std::vector<float>> members{member_right_on(30, 50), member_right_on(40, 50),
                                                  member_right_on(20, 50)};
    const auto together = interval_of(members, 50);
    ASSERT_TRUE(together);
    EXPECT_LT(together->low, together->high);
    std::optional<Interval> apart;
    run_members(3, [&](comm::Communicator& ranks) {
        MemberBootstrap bootstrap({3, 50, 2, 5, 3 * 2 * 16}, Vote::soft);
        EXPECT_EQ(bootstrap.chunk_rows(), 16) << "four chunks, the last of two samples";
        const auto got =
            bootstrap_over_members(ranks, members[static_cast<std::size_t>(ranks.rank())],
                                   std::vector<std::int32_t>(50, 0), std::move(bootstrap));
        if (ranks.rank() == 0) apart = got;
    });
    ASSERT_TRUE(apart);
    EXPECT_EQ(apart->low, together->low);
    EXPECT_EQ(apart->high, together->high);
}

}  // namespace
}  // namespace hpcai::evaluation
