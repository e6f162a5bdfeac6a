// SPDX-License-Identifier: Apache-2.0
#include "result_edits.hpp"

/// Evaluations during training.
namespace hpcai::end_to_end {
namespace {

class LearningCurve : public testing::Test {
protected:
    void SetUp() override {
        make_pictures(folder_.path());
        write(folder_ / "tiny.yaml", kConfig);
    }

    nlohmann::json run_with(const std::string& output, std::vector<std::string> changes) {
        changes.insert(changes.end(), {"bagging.M=1", "workload.epochs=3"});
        const Outcome outcome = run_ranks(folder_.path(), 2, changes, output);
        EXPECT_EQ(outcome.exit_code, 0) << outcome.error;
        return json_of(folder_ / output / "result.json");
    }

    storage::TemporaryFolder folder_;
};

/// BatchNorm's averages are local to the ranks until the end, so evaluations must restore them.
TEST_F(LearningCurve, ChangesNoBitOfTheTraining) {
    for (const std::string mode : {"data", "pipeline", "model"}) {
        const std::vector<std::string> settings{"bagging.P_degree=2", "parallel.mode=" + mode};
        std::vector<std::string> evaluated = settings;
        evaluated.push_back("run.evaluate_epochs=1");
        const nlohmann::json with = run_with("with-" + mode, evaluated);
        const nlohmann::json without = run_with("without-" + mode, settings);
        EXPECT_EQ(with["training_digest"], without["training_digest"]) << mode;
        EXPECT_TRUE(without["work"]["groups"][0]["quality_by_epoch"].empty());
        EXPECT_EQ(without["time"]["time_to_quality_seconds_reason"], "run.evaluate_epochs is 0");
        const nlohmann::json& curve = with["work"]["groups"][0]["quality_by_epoch"];
        ASSERT_EQ(curve.size(), 3U) << mode;
        EXPECT_EQ(curve[2]["quality"], with["quality"]["members"][0]);
        EXPECT_EQ(curve[2]["training_seconds"], with["time"]["training_seconds"]);
        EXPECT_LT(curve[0]["training_seconds"], curve[1]["training_seconds"]);
    }
}

TEST_F(LearningCurve, IsVerifiedDrawnAndLogged) {
    const nlohmann::json record = run_with("result", {"bagging.P_degree=2", "run.evaluate_epochs=2",
                                                      "workload.target_quality=0.0001"});
    const nlohmann::json& curve = record["work"]["groups"][0]["quality_by_epoch"];
    ASSERT_EQ(curve.size(), 2U);
    EXPECT_EQ(curve[0]["epoch"], 2);
    EXPECT_EQ(curve[1]["epoch"], 3);
    expect_verified(folder_ / "result");
    EXPECT_NE(text_of(folder_ / "result/report.html").find("Quality by epoch"), std::string::npos);
    const std::string log = text_of(folder_ / "result/mllog/result_0.txt");
    std::size_t evaluations = 0;
    for (std::size_t at = log.find("eval_accuracy"); at != std::string::npos;
         at = log.find("eval_accuracy", at + 1)) {
        ++evaluations;
    }
    EXPECT_EQ(evaluations, 2U);
    const Outcome check = cli::execute_in(
        folder_.path(),
        {"python3", cli::source("scripts/check_mllog.py"), "result/mllog/result_0.txt"});
    EXPECT_EQ(check.exit_code, 0) << check.out;
    expect_told(folder_ / "result", {"seconds of an epoch", "groups/0/record.json",
                                     "record.quality_by_epoch", [](const ResultCopy& copy) {
                                         copy.increase(
                                             "groups/0/record.json",
                                             "/record/quality_by_epoch/0/training_seconds");
                                     }});
    expect_told(folder_ / "result", {"time to quality", "result.json",
                                     "time.time_to_quality_seconds", [](const ResultCopy& copy) {
                                         copy.set("result.json", "/time/time_to_quality_seconds",
                                                  0.5);
                                     }});
}

TEST_F(LearningCurve, NeedsNoWeightsAfterTheEvaluation) {
    const nlohmann::json record =
        run_with("result", {"bagging.P_degree=2", "run.keep_weights=false"});
    EXPECT_FALSE(fs::exists(folder_ / "result/groups/0/weights.safetensors"));
    EXPECT_EQ(record["config"]["run"]["keep_weights"], false);
    EXPECT_NE(text_of(folder_ / "result/summary.txt").find("run.keep_weights"), std::string::npos);
    expect_verified(folder_ / "result");
    const Outcome refused = cli::run_in(
        folder_.path(), {"export", "result", "--group", "0", "--output", "m.safetensors"});
    EXPECT_EQ(refused.exit_code, 2);
    EXPECT_NE(refused.error.find("run.keep_weights is false"), std::string::npos) << refused.error;
}

}  // namespace
}  // namespace hpcai::end_to_end
