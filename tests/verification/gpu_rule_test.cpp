// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <hpcai/verification/derive.hpp>
#include <hpcai/verification/verdict.hpp>

namespace hpcai::verification {
namespace {

constexpr const char* kTwo = "rank 3 on node02: Xid 79 (and 1 more)";

VerdictRecord verdict_of(config::Level level, const VerdictFacts& facts) {
    config::Config config;
    config.run.level = level;
    return make_verdict(config, facts);
}

VerdictFacts sound_facts() {
    VerdictFacts facts;
    facts.has_score = true;
    facts.groups = 2;
    facts.watched_gpus = 8;
    return facts;
}

TEST(RuleOfGpus, MakesARunInvalidAtEveryLevel) {
    VerdictFacts facts = sound_facts();
    EXPECT_EQ(verdict_of(config::Level::custom, facts).status, Status::custom);
    facts.gpu_errors = {"rank 3 on node02: Xid 79", "rank 4 on node02: Xid 79"};
    const VerdictRecord custom = verdict_of(config::Level::custom, facts);
    EXPECT_EQ(custom.status, Status::invalid);
    EXPECT_EQ(custom.exit_code, ExitCode::invalid);
    EXPECT_EQ(custom.reasons, std::vector<std::string>{std::string("rule 10: ") + kTwo});
    const RuleRecord rule{10, "GPUs with uncorrected memory errors or Xids", "none", kTwo, false};
    EXPECT_EQ(custom.rules.back(), rule);
    EXPECT_EQ(verdict_of(config::Level::hardware, facts).rules.back(), rule);
}

TEST(RuleOfGpus, IsNotListedIfNoGpuWasWatched) {
    VerdictFacts facts = sound_facts();
    EXPECT_EQ(verdict_of(config::Level::custom, facts).rules.size(), 2U);
    facts.watched_gpus = 0;
    EXPECT_EQ(verdict_of(config::Level::custom, facts).rules.size(), 1U);
}

TEST(RuleOfGpus, ConcernsErrorsInFinishedGroupsButNotThrottledClocks) {
    std::vector<GroupResult> groups(3);
    const Quantity unknown{std::nullopt, "not supported"};
    groups[0].record.device_health = {
        {0, "node01", "GPU-0", {"hw_thermal_slowdown"}, {1, ""}, {5, ""}, {0, ""}, {}},
        {1, "node01", "GPU-1", {}, {0, ""}, {0, ""}, {1, ""}, {}}};
    groups[1].record.failure = "rank 2 ended";
    groups[1].record.device_health = {{2, "node01", "GPU-2", {}, unknown, unknown, unknown, {79}}};
    groups[2].record.device_health = {{4, "node02", "GPU-0", {}, unknown, unknown, unknown, {48}}};
    const VerdictFacts facts = facts_of(RunRecord(), groups);
    EXPECT_EQ(facts.watched_gpus, 3);
    EXPECT_EQ(facts.gpu_errors,
              (std::vector<std::string>{"rank 1 on node01: 1 uncorrected memory error",
                                        "rank 4 on node02: Xid 48"}));
}

}  // namespace
}  // namespace hpcai::verification
