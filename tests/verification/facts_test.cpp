// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <hpcai/verification/derive.hpp>

namespace hpcai::verification {
namespace {

/// A group one of whose clocks advanced by `seconds` in 1000 s of UTC.
GroupResult group_with_clock(double seconds, const std::string& name = "clock:boottime") {
    GroupResult group;
    group.record.group = 1;
    group.counters = {{"node01", name, "s", "", {{50'000, 7}, {51'000, 7 + seconds}}}};
    return group;
}

std::vector<std::string> not_rankable(const GroupResult& group, const RunRecord& record = {}) {
    return facts_of(record, {group}).not_rankable;
}

TEST(VerdictFacts, ExcludeARunWithWrongClocksFromTheRanking) {
    EXPECT_THAT(not_rankable(group_with_clock(100)),
                testing::ElementsAre("clock:boottime of group 1 advanced by 100.0 s while UTC "
                                     "advanced by 1000.0 s: not rankable"));
    EXPECT_EQ(not_rankable(group_with_clock(1012)).size(), 1U);
    EXPECT_EQ(not_rankable(group_with_clock(988)).size(), 1U);
}

TEST(VerdictFacts, AllowTheCorrectionsOfNtp) {
    EXPECT_TRUE(not_rankable(group_with_clock(1010)).empty());
    EXPECT_TRUE(not_rankable(group_with_clock(990)).empty());
    EXPECT_TRUE(not_rankable(group_with_clock(100, "training:steps")).empty());
}

TEST(VerdictFacts, ExcludeARunWithAPreloadedLibraryFromTheRanking) {
    RunRecord record;
    record.environment[kPreloadedFact] = "libfaketime.so.1";
    EXPECT_THAT(not_rankable({}, record),
                testing::ElementsAre("libfaketime.so.1 was preloaded: not rankable, because it can "
                                     "replace the clock"));
}

TEST(VerdictFacts, ExcludeASearchThatEndedEarlyFromTheRanking) {
    RunRecord record;
    record.search.emplace();
    EXPECT_TRUE(not_rankable({}, record).empty());
    record.search->early_ends = {"group 1: its last 20 trials failed"};
    EXPECT_THAT(not_rankable({}, record),
                testing::ElementsAre("group 1: its last 20 trials failed: not rankable"));
}

TEST(VerdictFacts, ExcludeARunWithAResumedGroupFromTheRanking) {
    GroupResult group;
    group.record.continuations = {{4, "2022-11-06T00:00:00Z"}};
    EXPECT_THAT(not_rankable(group),
                testing::ElementsAre(testing::HasSubstr("a group was resumed: not rankable")));
}

}  // namespace
}  // namespace hpcai::verification
