// SPDX-License-Identifier: Apache-2.0
#include "search_run.hpp"

#include <cmath>
#include <cstdlib>
#include <set>

/// Architecture searches on a few small images.
namespace hpcai::end_to_end {
namespace {

TEST_F(SearchRun, VerifiesWhereNothingWasChanged) {
    expect_verified(result());
    const Outcome outcome = cli::run_in(folder_->path(), {"verify", "result", "--data", "set"});
    EXPECT_EQ(outcome.exit_code, 0) << outcome.out << outcome.error;
}

TEST_F(SearchRun, TrainsItsTrialsForTheEpochsOfTheirRounds) {
    for (const int group : {0, 1}) {
        const auto lines = trials_in(result(), group);
        ASSERT_EQ(lines.size(), 2U * kTrials);
        EXPECT_TRUE(lines[0]["edits"].empty());
        EXPECT_EQ(lines[1]["accuracy"].size(), 1U);
        for (std::size_t trial = 1; trial < kTrials; ++trial) {
            EXPECT_FALSE(lines[2 * trial]["edits"].empty()) << trial;
            EXPECT_EQ(lines[2 * trial + 1]["accuracy"].size(), 2U) << trial;
        }
        EXPECT_FALSE(fs::exists(result("groups/0/trials/0.safetensors")));
    }
}

TEST_F(SearchRun, ScoresTheWorkOfAllTrials) {
    const nlohmann::json search = json_of(result("result.json"))["search"];
    double work = 0, seconds = 0, best = 0;
    for (const int group : {0, 1}) {
        for (const auto& line : trials_in(result(), group)) {
            if (!line.contains("accuracy")) continue;
            for (const auto& flops : line["flops"]) {
                if (flops["ledger"] != "aiperf") continue;
                work += flops["training"].get<double>() * line["samples_trained"].get<double>() +
                        flops["evaluation"].get<double>() * line["samples_evaluated"].get<double>();
            }
            seconds = std::max(seconds, line["epoch_seconds"].back().get<double>());
            best = std::max(best, line["accuracy"].back().get<double>());
        }
    }
    EXPECT_NEAR(search["work"].get<double>(), work, 1e-12 * work);
    EXPECT_EQ(search["seconds"], seconds);
    EXPECT_NEAR(search["ops"].get<double>(), work / seconds, 1e-12 * work / seconds);
    EXPECT_EQ(search["best_accuracy"], best);
    const double error = std::max(1 - best, 0.5 / search["hold_out_samples"].get<double>());
    EXPECT_NEAR(search["regulated"].get<double>(), -work / seconds * std::log(error),
                1e-12 * work / seconds);
    EXPECT_EQ(search["family"].size(), 2U * kTrials);
    EXPECT_NE(text_of(result("report.html")).find("Family tree"), std::string::npos);
}

TEST_F(SearchRun, ExportsTheBestModelAndItsNetwork) {
    const Outcome outcome =
        cli::run_in(folder_->path(), {"export", "result", "--output", "best.safetensors"});
    ASSERT_EQ(outcome.exit_code, 0) << outcome.error;
    EXPECT_NE(outcome.out.find("wrote best.py"), std::string::npos) << outcome.out;
    const std::string network = text_of(*folder_ / "best.py");
    EXPECT_NE(network.find("class Network("), std::string::npos) << network;
    const std::string group = outcome.out.substr(outcome.out.find("base model ") + 11, 1);
    const auto edits = json_of(result("groups/" + group + "/record.json"))["search"]["edits"];
    for (std::size_t i = 0; i < edits.size(); ++i) {
        if (edits[i]["kind"] != "skip" && edits[i]["kind"] != "deeper") continue;
        EXPECT_NE(network.find(fmt::format("\"edit{}.", i)), std::string::npos) << edits;
    }
}

TEST_F(SearchRun, BreaksTheRulesOfAiperfOnAFewPictures) {
    const Outcome outcome =
        run_ranks(folder_->path(), 2, {"run.level=aiperf", "search.trials=2"}, "aiperf");
    EXPECT_EQ(outcome.exit_code, 9) << outcome.error;
    const nlohmann::json verdict = json_of(*folder_ / "aiperf/result.json")["verdict"];
    EXPECT_EQ(verdict["status"], "INVALID");
    std::set<std::string> broken;
    for (const auto& rule : verdict["rules"])
        if (rule["kept"] == false) broken.insert(rule["what"]);
    EXPECT_TRUE(broken.contains("the best accuracy on the hold-out")) << verdict;
    EXPECT_TRUE(broken.contains("search.duration_seconds")) << verdict;
    EXPECT_TRUE(broken.contains("the number of training samples")) << verdict;
    expect_verified(*folder_ / "aiperf");
}

TEST_F(SearchRun, HoldsOutSamplesThatNoTrialTrainsOn) {
    const nlohmann::json record = json_of(result("result.json"));
    const auto names = lines_of(text_of(result("evaluation/hold_out.txt")));
    EXPECT_EQ(record["search"]["hold_out_samples"], names.size());
    EXPECT_EQ(record["workload"]["training_samples"], 24 - std::ssize(names));
    EXPECT_FALSE(names.empty());
}

TEST_F(SearchRun, RepeatsARecordedSearchToTheBit) {
    const Outcome again = run_ranks(folder_->path(), 2,
                                    {"search.history=recorded", "search.recorded=result"}, "again");
    ASSERT_EQ(again.exit_code, 0) << again.error;
    EXPECT_EQ(digests_of("again"), digests_of("result"));
    for (const int group : {0, 1}) {
        const auto first = trials_in(result(), group),
                   second = trials_in(*folder_ / "again", group);
        for (std::size_t line = 0; line < first.size(); ++line) {
            for (const char* key : {"seen", "parent", "edits", "hyper_parameters", "accuracy"}) {
                if (!first[line].contains(key)) continue;
                EXPECT_EQ(first[line][key], second[line][key]) << group << " " << line;
            }
        }
    }
    expect_verified(*folder_ / "again");
}

TEST_F(SearchRun, ProposesNoNetworkThatNeedsTooMuchMemory) {
    const Outcome outcome =
        run_ranks(folder_->path(), 2, {"search.max_memory_gb=0.0033", "search.trials=3"}, "small");
    ASSERT_EQ(outcome.exit_code, 0) << outcome.error;
    int refused = 0;
    for (const auto& line : trials_in(*folder_ / "small", 0)) {
        if (!line.contains("draw")) continue;
        refused += line["draw"].get<int>();
        EXPECT_EQ(line["memory_bytes"], 3'300'000);
    }
    EXPECT_GT(refused, 0);
    expect_verified(*folder_ / "small");
    expect_told(*folder_ / "small", edit_of("memory", 2, "line 3: memory_bytes: is 3300001",
                                            [](auto& line) { line["memory_bytes"] = 3'300'001; }));
}

TEST_F(SearchRun, TrainsTheRootAloneIfItMayNeedTooMuchMemory) {
    const Outcome outcome = run_ranks(
        folder_->path(), 2, {"search.max_memory_gb=0.001", "search.trials=3"}, "smallest");
    ASSERT_EQ(outcome.exit_code, 0) << outcome.error;
    for (const auto& line : trials_in(*folder_ / "smallest", 0)) {
        if (!line.contains("draw")) continue;
        EXPECT_EQ(line["draw"], line["sequence"] == 0 ? 0 : 100);
    }
    expect_verified(*folder_ / "smallest");
}

TEST_F(SearchRun, VerifiesWithPlainDeepening) {
    const Outcome outcome = run_ranks(
        folder_->path(), 2,
        {"search.plain_deepening=true", "search.history=own", "search.trials=9"}, "plain");
    ASSERT_EQ(outcome.exit_code, 0) << outcome.error;
    const std::string trials = text_of(*folder_ / "plain/groups/0/trials.jsonl");
    EXPECT_NE(trials.find("\"kind\":\"deeper_plain\""), std::string::npos) << trials;
    expect_verified(*folder_ / "plain");
    EXPECT_NE(text_of(*folder_ / "plain/report.html").find("deeper_plain"), std::string::npos);
}

TEST_F(SearchRun, RefusesToRepeatASearchWithOtherSettingsBeforeItStarts) {
    for (const auto& [recorded, seed, part] :
         {std::tuple{"result", "4", "has other settings"},
          {"none", "3", "search.recorded: 'none' is no result of a search"}}) {
        const Outcome outcome =
            run_ranks(folder_->path(), 2,
                      {"search.history=recorded", std::string("search.recorded=") + recorded,
                       std::string("run.seed=") + seed},
                      "refused");
        EXPECT_EQ(outcome.exit_code, 2) << outcome.error;
        EXPECT_NE(outcome.error.find(part), std::string::npos) << outcome.error;
        EXPECT_FALSE(fs::exists(*folder_ / "refused"));
    }
}

TEST_F(SearchRun, VerifiesWithASkippedHeldOutSample) {
    const auto names = lines_of(text_of(result("evaluation/hold_out.txt")));
    const fs::path picture = *folder_ / "set/train" / names.at(0);
    const std::string undamaged = text_of(picture);
    fs::resize_file(picture, 300);
    const Outcome outcome =
        run_ranks(folder_->path(), 2, {"search.trials=2", "data.on_bad_sample=skip"}, "skipped");
    write(picture, undamaged);
    ASSERT_EQ(outcome.exit_code, 0) << outcome.error;
    expect_verified(*folder_ / "skipped");
    EXPECT_GT(json_of(*folder_ / "skipped/groups/0/record.json")["bad_samples"], 0);
}

TEST_F(SearchRun, DoesNotDependOnOtherGroupsWithItsOwnHistory) {
    const fs::path own = own_result();
    const Outcome again = run_ranks(folder_->path(), 2, {"search.history=own"}, "own-again");
    ASSERT_EQ(again.exit_code, 0) << again.error;
    expect_verified(own);
    EXPECT_EQ(digests_of("own"), digests_of("own-again"));
    for (const auto& line : trials_in(own, 0)) {
        if (line.contains("seen")) {
            EXPECT_EQ(line["seen"][1], 0);
        }
    }
    const std::string file = "groups/0/trials.jsonl";
    expect_told(own, {"removed trial", file, "has 4 trials in ", [=](const ResultCopy& copy) {
                          auto lines = trials_in(copy.path(), 0);
                          lines.resize(lines.size() - 2);
                          put_chained(copy, file, std::move(lines));
                      }});
    expect_told(own, edit_of("another group", 8, "line 9: seen[1]: expected 0",
                             [](auto& line) { line["seen"][1] = 2; }));
    Edit failed = edit_of("failed trial", 9, "has ", [](auto& line) {
        line["state"] = "failed";
        for (const char* key : {"accuracy", "epoch_seconds"})
            line[key] = nlohmann::ordered_json::array();
        for (const char* key : {"samples_trained", "samples_evaluated"}) line[key] = 0;
    });
    failed.at = "groups/0/steps.csv";
    expect_told(own, failed);
}

/// With 16 trials, the last ones draw hyper-parameters by densities.
TEST_F(SearchRun, VerifiesWithOtherParents) {
    for (const std::string parent : {"bayesian", "random"}) {
        const Outcome outcome =
            run_ranks(folder_->path(), 2, {"search.parent=" + parent, "search.trials=8"}, parent);
        ASSERT_EQ(outcome.exit_code, 0) << outcome.error;
        expect_verified(*folder_ / parent);
        Edit edits = edit_of("edits", 14, "", [](auto& line) { line["edits"].erase(0); });
        edits.at = "groups/0/trials.jsonl";
        expect_told(*folder_ / parent, edits);
    }
}

TEST_F(SearchRun, EndsAtItsDurationAndTrainsInGroupsOfRanks) {
    const Outcome outcome = run_ranks(
        folder_->path(), 2,
        {"search.trials=0", "search.duration_seconds=4", "bagging.M=1", "bagging.P_degree=2"},
        "timed");
    ASSERT_EQ(outcome.exit_code, 0) << outcome.error;
    // It may end while it stores a trial, after the last epoch and after the trial's end_seconds.
    EXPECT_GE(trials_in(*folder_ / "timed", 0).back()["end_seconds"].get<double>(), 3);
    expect_verified(*folder_ / "timed");
}

TEST_F(SearchRun, GivesUpTrialsThatDivergeAndGoesOn) {
    const Outcome outcome =
        run_ranks(folder_->path(), 2,
                  {"search.trials=4", "bagging.M=1", "bagging.P_degree=2",
                   "training.learning_rate=15", "training.weight_decay=0.5",
                   "search.weight_decays=[0.4, 1]", "search.rate_factors=[1, 1000]"},
                  "diverging");
    ASSERT_EQ(outcome.exit_code, 0) << outcome.error;
    int failed = 0, completed = 0;
    for (const auto& line : trials_in(*folder_ / "diverging", 0)) {
        if (!line.contains("state")) continue;
        ++(line["state"] == "failed" ? failed : completed);
        if (line["state"] != "failed") continue;
        EXPECT_NE(line["reason"].get<std::string>().find("training diverged"), std::string::npos);
        EXPECT_TRUE(line["accuracy"].empty());
    }
    EXPECT_EQ(completed, 4);
    EXPECT_GT(failed, 0);
    expect_verified(*folder_ / "diverging");
}

TEST_F(SearchRun, FailsIfTheFirstTrialDiverges) {
    const Outcome outcome = run_ranks(
        folder_->path(), 1,
        {"search.trials=4", "search.epochs=[2]", "bagging.M=1", "training.learning_rate=1000",
         "training.weight_decay=1", "training.learning_rate_batch=1", "search.weight_decays=[1, 1]",
         "training.batch_size=2"},
        "hopeless");
    EXPECT_NE(outcome.exit_code, 0);
    EXPECT_NE(outcome.error.find("trial 0: training diverged"), std::string::npos) << outcome.error;
}

/// Each trial has a new reducer: no residual of the last model's gradients is added to the next.
TEST_F(SearchRun, ReducesTheGradientsOfEveryModelAnew) {
    const std::vector<std::string> changes{"search.trials=3", "bagging.M=1", "bagging.P_degree=2",
                                           "communication.algorithm=torus_2d",
                                           "communication.precision=int8"};
    for (const std::string output : {"int8", "int8-again"}) {
        const Outcome outcome = run_ranks(folder_->path(), 2, changes, output);
        ASSERT_EQ(outcome.exit_code, 0) << outcome.error;
        expect_verified(*folder_ / output);
    }
    EXPECT_EQ(digests_of("int8"), digests_of("int8-again"));
    const nlohmann::json sums = json_of(*folder_ / "int8/result.json")["communication"];
    EXPECT_GT(sums["sent_bytes_per_step"].get<double>(), 0);
}

TEST_F(SearchRun, TrainsEveryModelOnSeveralGpus) {
    const char* const folder = std::getenv("HPCAI500_STAND_IN");
    if (folder == nullptr || *folder == '\0') GTEST_SKIP() << "built without CUDA's headers";
    Launch launch{folder_->path(),
                  2,
                  {"search.trials=3", "bagging.M=1", "bagging.P_degree=2", "device.kind=cuda",
                   "device.autotune=false"},
                  {"env", std::string("LD_LIBRARY_PATH=") + folder, "HPCAI500_STAND_IN_PER_RANK=1"},
                  "gpus"};
    launch.program = (fs::path(folder) / "hpcai500").string();
    const Outcome outcome = run(launch);
    ASSERT_EQ(outcome.exit_code, 0) << outcome.error;
    EXPECT_EQ(json_of(*folder_ / "gpus/result.json")["communication"]["backend"], "nccl");
    expect_verified(*folder_ / "gpus");
}

TEST_F(SearchRun, LosesOnlyTheSearchOfAKilledGroup) {
    const char* const recovery = std::getenv("HPCAI500_RECOVERY");
    if (recovery == nullptr) GTEST_SKIP() << "this mpirun ends all ranks with the first";
    write(*folder_ / "mortal.sh",
          "#!/bin/bash\n"
          "if [ \"${OMPI_COMM_WORLD_RANK:-$PMI_RANK}\" = 1 ]; then (\n"
          "  until grep -q ' trial 1: ' partial/groups/1/log.txt; do\n"
          "    kill -0 $$ || exit\n    sleep 0.02\n  done 2> /dev/null\n"
          "  kill -KILL $$\n) & fi\n"
          "exec \"$HPCAI500_BINARY\" \"$@\"\n");
    fs::permissions(*folder_ / "mortal.sh", fs::perms::owner_all);
    Launch launch{folder_->path(),
                  2,
                  {"search.trials=8", "run.group_timeout_seconds=10"},
                  {recovery},
                  "partial"};
    launch.program = (*folder_ / "mortal.sh").string();
    const Outcome outcome = run(launch);
    EXPECT_TRUE(last_line(outcome.out).starts_with("RESULT PARTIAL")) << outcome.error;
    EXPECT_EQ(trials_in(*folder_ / "partial", 0).size(), 16U);
    EXPECT_LT(trials_in(*folder_ / "partial", 1).size(), 16U);
    expect_verified(*folder_ / "partial");
}

}  // namespace
}  // namespace hpcai::end_to_end
