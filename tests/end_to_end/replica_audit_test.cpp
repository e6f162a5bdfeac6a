// SPDX-License-Identifier: Apache-2.0
#include <regex>

#include <hpcai/records/json.hpp>

#include "launch.hpp"

/// Runs with a silent bit error in the memory or network of one rank.
namespace hpcai::end_to_end {
namespace {

using Json = nlohmann::json;

class SilentCorruption : public testing::Test {
protected:
    void SetUp() override {
        make_pictures(folder_.path());
        write(folder_ / "tiny.yaml", kConfig);
    }

    /// Runs with a wrong bit in all-reduce `sum` of `world_rank`.
    Outcome run_with_fault(int ranks, int world_rank, int sum,
                           const std::vector<std::string>& changes) {
        const std::vector<std::string> launcher{
            "env", "LD_PRELOAD=" + cli::environment("HPCAI500_FLIP_BIT"),
            "HPCAI500_FLIP_RANK=" + std::to_string(world_rank),
            "HPCAI500_FLIP_SUM=" + std::to_string(sum)};
        return run({folder_.path(), ranks, changes, launcher});
    }

    Json result() const { return json_of(folder_ / "result/result.json"); }
    Json group(int number) const {
        return json_of(folder_ / fmt::format("result/groups/{}/record.json", number));
    }

    storage::TemporaryFolder folder_;
};

std::string words(const Json& list) {
    std::string all;
    for (const Json& one : list) all += one.get<std::string>() + "\n";
    return all;
}

TEST_F(SilentCorruption, OfOneOfTwoRanksMakesTheRunInvalidAndNamesBothWhileTheOtherGroupFinishes) {
    const Outcome outcome = run_with_fault(4, 3, 8, {"bagging.P_degree=2", "run.audit_steps=1"});
    EXPECT_EQ(outcome.exit_code, 9) << outcome.error;
    EXPECT_TRUE(last_line(outcome.out).starts_with("RESULT INVALID  ")) << outcome.out;
    const std::regex named(
        R"(reason: rule 8: the ranks of a group must hold the same model; in 1 of 2 groups they )"
        R"(did not\nreason: group 1: replica audit after step 2: parameters and optimizer state differ )"
        R"(between group rank 0 \(world rank 2, \S+\), group rank 1 \(world rank 3, \S+\)\n)");
    EXPECT_TRUE(std::regex_search(outcome.out, named)) << outcome.out;
    EXPECT_NE(outcome.error.find("group 1 failed: replica audit after step 2"), std::string::npos)
        << outcome.error;

    const Json all = result();
    EXPECT_EQ(all["verdict"]["status"], "INVALID");
    EXPECT_EQ(all["verdict"]["exit_code"], 9);
    EXPECT_NE(words(all["verdict"]["reasons"]).find("rule 8"), std::string::npos);
    const Json audit = all["work"]["groups"][1]["audit"];
    EXPECT_EQ(audit, group(1)["record"]["audit"]);
    EXPECT_EQ(all["communication"]["buckets"], 4)
        << "per step, so all-reduce 8 is the last of the second step";
    EXPECT_EQ(audit["passed"], 1);
    EXPECT_EQ(audit["diverged_at_step"], 2);
    EXPECT_EQ(audit["differs"], Json({"parameters", "optimizer state"}));
    ASSERT_EQ(audit["ranks"].size(), 2U);
    for (const int rank : {0, 1}) {
        const Json one = audit["ranks"][static_cast<std::size_t>(rank)];
        EXPECT_EQ(one["group_rank"], rank);
        EXPECT_EQ(one["world_rank"], 2 + rank);
        EXPECT_EQ(one["host"], all["topology"]["map"][static_cast<std::size_t>(2 + rank)]["host"]);
    }
    EXPECT_EQ(all["work"]["groups"][0]["audit"]["passed"], 4) << "three steps and the end";
    EXPECT_EQ(all["work"]["groups"][0]["audit"]["diverged_at_step"], 0);
    EXPECT_TRUE(fs::exists(folder_ / "result/groups/0/weights.safetensors"));
    EXPECT_FALSE(fs::exists(folder_ / "result/groups/1/weights.safetensors"));
    EXPECT_EQ(all["quality"]["ensemble"], all["quality"]["members"][0]);
}

TEST_F(SilentCorruption, OfOneOfThreeRanksNamesThatRank) {
    // Other gradients of the first step are zero, for example of the last scales of residual
    // blocks.
    constexpr int kSum = 1;
    const Outcome outcome = run_with_fault(
        3, 1, kSum,
        {"bagging.M=1", "bagging.P_degree=3", "training.batch_size=6", "run.audit_steps=2"});
    EXPECT_EQ(outcome.exit_code, 9) << outcome.error;
    const std::regex named(
        R"(reason: group 0: replica audit after step 2: parameters and optimizer state of group rank 1 )"
        R"(\(world rank 1, \S+\) differ from those of the other 2 ranks\n)");
    EXPECT_TRUE(std::regex_search(outcome.out, named)) << outcome.out;
    const Json audit = result()["work"]["groups"][0]["audit"];
    EXPECT_EQ(audit["passed"], 0);
    ASSERT_EQ(audit["ranks"].size(), 1U);
    EXPECT_EQ(audit["ranks"][0]["group_rank"], 1);
}

TEST_F(SilentCorruption, InALaterStageOfAPipelineNamesTheRanksOfThatStage) {
    const Outcome outcome =
        run_with_fault(4, 3, 2,
                       {"bagging.M=1", "bagging.P_degree=4", "parallel.mode=pipeline",
                        "parallel.pipeline_degree=2", "run.audit_steps=1"});
    EXPECT_EQ(outcome.exit_code, 9) << outcome.error;
    const std::regex named(
        R"(reason: group 0: replica audit after step \d: parameters and optimizer state differ )"
        R"(between group rank 2 \(world rank 2, \S+\), group rank 3 \(world rank 3, \S+\)\n)");
    EXPECT_TRUE(std::regex_search(outcome.out, named)) << outcome.out;
    const Json audit = result()["work"]["groups"][0]["audit"];
    EXPECT_GT(audit["diverged_at_step"], 0);
    ASSERT_EQ(audit["ranks"].size(), 2U);
    EXPECT_EQ(audit["ranks"][1]["group_rank"], 3);
}

TEST_F(SilentCorruption, IsFoundAtTheEndOfTrainingByDefaultAndNothingElseIs) {
    const std::vector<std::string> two{"bagging.M=1", "bagging.P_degree=2"};
    const Outcome fault = run_with_fault(2, 0, 12, two);
    EXPECT_EQ(fault.exit_code, 9) << fault.error;
    EXPECT_NE(fault.out.find("replica audit after step 3: "), std::string::npos) << fault.out;
    fs::remove_all(folder_ / "result");
    const Outcome none = run_with_fault(2, -1, 0, two);
    EXPECT_EQ(none.exit_code, 0) << none.error;
    EXPECT_EQ(result()["work"]["groups"][0]["audit"], Json({{"passed", 1},
                                                            {"diverged_at_step", 0},
                                                            {"differs", Json::array()},
                                                            {"ranks", Json::array()}}));
}

}  // namespace
}  // namespace hpcai::end_to_end
