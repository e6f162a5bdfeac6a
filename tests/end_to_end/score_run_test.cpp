// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <hpcai/records/json.hpp>
#include <hpcai/report/progress.hpp>

#include "launch.hpp"
#include "storage/temporary_folder.hpp"

/// Runs that died before the evaluation of the ensemble.
namespace hpcai::end_to_end {
namespace {

using testing::HasSubstr;
using Json = nlohmann::json;

class ScoredRun : public testing::Test {
protected:
    /// A run of two finished groups; each test uses a copy.
    static void SetUpTestSuite() {
        finished_ = new storage::TemporaryFolder();
        make_pictures(finished_->path());
        write(*finished_ / "tiny.yaml", kConfig);
        const Outcome outcome = run_ranks(finished_->path(), 2, {}, "whole");
        ASSERT_EQ(outcome.exit_code, 0) << outcome.error;
    }
    static void TearDownTestSuite() { delete finished_; }
    void SetUp() override {
        fs::copy(finished_->path(), folder_.path(), fs::copy_options::recursive);
    }

    /// Stores in "result" the files of two finished groups with `changes`, without the evaluation
    /// of the ensemble.
    void run_and_die(const std::vector<std::string>& changes = {}) const {
        if (!changes.empty()) {
            fs::remove_all(folder_ / "whole");
            const Outcome outcome = run_ranks(folder_.path(), 2, changes, "whole");
            ASSERT_EQ(outcome.exit_code, 0) << outcome.error;
        }
        fs::copy(folder_ / "whole", folder_ / "result", fs::copy_options::recursive);
        for (const char* name : {"result.json", "report.html", "summary.txt", "manifest.sha256",
                                 "environment.json", "mllog", "evaluation"}) {
            fs::remove_all(folder_ / "result" / name);
        }
    }
    Outcome score(const std::vector<std::string>& options = {}) const {
        std::vector<std::string> words{"score", "result"};
        words.insert(words.end(), options.begin(), options.end());
        return cli::run_in(folder_.path(), words);
    }
    Json result(const std::string& output = "result") const {
        return json_of(folder_ / (output + "/result.json"));
    }
    void expect_verified() const {
        const Outcome verified = cli::run_in(folder_.path(), {"verify", "result"});
        EXPECT_EQ(verified.exit_code, 0) << verified.out;
        const Outcome again = cli::execute_in(
            folder_.path(), {"python3", cli::source("scripts/verify_result"), "result"});
        EXPECT_EQ(again.exit_code, 0) << again.out;
    }
    /// Edits a group's files as if it had trained on another host.
    static void move_to(const std::string& from, const std::string& to, const fs::path& group) {
        for (const auto& [file, mark] : {std::pair{"ranks.csv", ","}, {"record.json", "\""}}) {
            std::string text = text_of(group / file);
            const std::string old = mark + from + mark, other = mark + to + mark;
            ASSERT_NE(text.find(old), std::string::npos) << text;
            for (std::size_t at = 0; (at = text.find(old, at)) != std::string::npos;) {
                text.replace(at, old.size(), other);
            }
            write(group / file, text);
        }
    }
    bool is_unscored() const {
        return !fs::exists(folder_ / "result/result.json") &&
               !fs::exists(folder_ / "result/evaluation");
    }

    storage::TemporaryFolder folder_;
    static storage::TemporaryFolder* finished_;
};

storage::TemporaryFolder* ScoredRun::finished_ = nullptr;

TEST_F(ScoredRun, HasTheResultThatItsVoteWouldHaveHad) {
    run_and_die({"run.checkpoint_steps=1"});
    fs::create_directories(folder_ / "result/checkpoints/0/step-000000000001");
    const Outcome outcome = score();
    EXPECT_EQ(outcome.exit_code, 0) << outcome.error;
    EXPECT_THAT(last_line(outcome.out), testing::StartsWith("RESULT CUSTOM  workload="));
    Json mine = result(), expected = result("whole");
    const Json time = mine["time"];
    EXPECT_TRUE(time["startup_seconds"].is_null());
    EXPECT_THAT(time["total_seconds_reason"].get<std::string>(), HasSubstr("ended without"));
    EXPECT_EQ(time["training_seconds"], expected["time"]["training_seconds"]);
    EXPECT_EQ(time["started_utc"], expected["time"]["started_utc"]);
    ASSERT_EQ(mine["invocations"].size(), 2U);
    EXPECT_EQ(mine["invocations"][0], expected["invocations"][0]);
    for (Json* one : {&mine, &expected}) {
        one->erase("invocations");
        one->erase("time");
        one->erase("summary_sha256");
    }
    EXPECT_EQ(mine, expected);
    for (const char* file : {"ensemble.npy", "labels.npy", "samples.txt"}) {
        const std::string name = std::string("/evaluation/") + file;
        EXPECT_TRUE(text_of(folder_ / ("result" + name)) == text_of(folder_ / ("whole" + name)));
    }
    EXPECT_FALSE(fs::exists(folder_ / "result/checkpoints")) << "of a group that has finished";
    expect_verified();
    const std::string manifest = text_of(folder_ / "result/manifest.sha256");
    const Outcome again = score();
    EXPECT_EQ(again.exit_code, 2);
    EXPECT_THAT(again.error, HasSubstr("result: has a result, which is not overwritten"));
    EXPECT_EQ(text_of(folder_ / "result/manifest.sha256"), manifest);
}

TEST_F(ScoredRun, NamesTheGroupsThatHaveNotFinishedAndVotesWithoutThemWhereItMay) {
    run_and_die({"bagging.out_of_bag=true", "bagging.sampler=bootstrap"});
    fs::remove(folder_ / "result/groups/1/record.json");
    EXPECT_THAT(score().error,
                HasSubstr("(group 1: it has stored no record); `" + resume_command(2)));
    ProgressRecord progress;
    progress.host = "node7";
    progress.step = 5;
    progress.steps = 12;
    progress.written_unix_seconds = 1'700'000'000;
    write(folder_ / "result/groups/1/progress.json", records::to_json(progress));
    const Outcome refused = score();
    EXPECT_EQ(refused.exit_code, 7);
    EXPECT_THAT(messages(refused),
                testing::ElementsAre(
                    "hpcai500: result: 1 of 2 groups have finished (group 1: training at step 5 of "
                    "12 on node7 in its last report, at 2023-11-14T22:13:20Z); `" +
                    resume_command(2) +
                    "` resumes the others, and with --allow-partial the "
                    "finished groups vote without them"));
    EXPECT_TRUE(is_unscored());
    const Outcome partial = score({"--allow-partial"});
    EXPECT_EQ(partial.exit_code, 7) << partial.error;
    EXPECT_THAT(partial.out, HasSubstr("\nreason: group 1: training at step 5 of 12 on node7"));
    EXPECT_THAT(last_line(partial.out), testing::StartsWith("RESULT PARTIAL  workload="));
    const Json mine = result();
    EXPECT_EQ(mine["verdict"]["reasons"][0], "1 of 2 groups finished");
    EXPECT_EQ(mine["quality"]["ensemble"], result("whole")["quality"]["members"][0]);
    EXPECT_TRUE(mine["quality"]["out_of_bag"].is_null());
    EXPECT_THAT(mine["quality"]["out_of_bag_reason"].get<std::string>(), HasSubstr("not stored"));
    EXPECT_FALSE(fs::exists(folder_ / "result/groups/1/progress.json"));
    expect_verified();
}

TEST_F(ScoredRun, DoesNotVoteWithFilesThatAreDamaged) {
    run_and_die();
    const fs::path predictions = folder_ / "result/groups/0/predictions.npy";
    write(predictions, text_of(predictions) + "x");
    write(folder_ / "result/groups/1/record.json", "{\"schema\": 7}");
    const Outcome none = score({"--allow-partial"});
    EXPECT_EQ(none.exit_code, 5);
    EXPECT_THAT(none.error,
                HasSubstr("result: no group has finished (group 0: "
                          "'result/groups/0/predictions.npy' does not have the digest in "
                          "the group's record.json; group 1: 'result/groups/1/record.json': "
                          "schema"));
    EXPECT_TRUE(is_unscored());
    fs::copy_file(folder_ / "whole/groups/0/predictions.npy", predictions,
                  fs::copy_options::overwrite_existing);
    EXPECT_EQ(score({"--allow-partial"}).exit_code, 7);
    EXPECT_TRUE(fs::exists(folder_ / "result/attempts/1/groups/1/record.json"));
    expect_verified();
}

TEST_F(ScoredRun, PutsTheRanksOfAGroupOnTheHostAndNodeWhereItTrained) {
    run_and_die();
    const std::string host = result("whole")["topology"]["map"][1]["host"];
    move_to(host, "node7", folder_ / "result/groups/1");
    EXPECT_EQ(score().exit_code, 0);
    const Json topology = result()["topology"];
    EXPECT_EQ(topology["nodes"], 2);
    EXPECT_EQ(topology["map"][0]["host"], host);
    EXPECT_EQ(topology["map"][1]["host"], "node7");
    EXPECT_EQ(topology["map"][1]["node"], 1);
    EXPECT_EQ(topology["map"][1]["local_rank"], 0);
    expect_verified();
}

TEST_F(ScoredRun, IsRefusedWhereVerifyWouldRejectIt) {
    run_and_die();
    const fs::path file = folder_ / "result/groups/1/record.json";
    const std::string text = text_of(file);
    auto record = nlohmann::ordered_json::parse(text);
    record["record"]["training_seconds"] = 0.001;
    write(file, record.dump(2) + "\n");
    const Outcome outcome = score();
    EXPECT_EQ(outcome.exit_code, 10);
    EXPECT_EQ(outcome.out, "");
    EXPECT_THAT(messages(outcome),
                testing::ElementsAre(HasSubstr(
                    "result: `hpcai500 verify` would reject the result: groups/1/record.json: "
                    "record.training_seconds is 0.001, which is wrong")));
    for (const char* name : {"result.json", "summary.txt", "manifest.sha256"}) {
        EXPECT_FALSE(fs::exists(folder_ / "result" / name)) << name;
    }
    write(file, text);
    EXPECT_EQ(score().exit_code, 0);
    expect_verified();
}

TEST_F(ScoredRun, IsRefusedWithATableOfRanksThatCannotBeRead) {
    run_and_die();
    write(folder_ / "result/groups/1/ranks.csv", "group_rank\nx\n");
    const Outcome outcome = score();
    EXPECT_EQ(outcome.exit_code, 10);
    EXPECT_THAT(outcome.error, HasSubstr("would reject the result: groups/1/ranks.csv: "));
}

TEST_F(ScoredRun, IsNotWrittenThroughALink) {
    run_and_die();
    fs::create_directory(folder_ / "victim");
    write(folder_ / "victim/ensemble.npy", "mine");
    fs::create_directory_symlink("../victim", folder_ / "result/evaluation");
    const Outcome outcome = score();
    EXPECT_EQ(outcome.exit_code, 4);
    EXPECT_THAT(messages(outcome),
                testing::ElementsAre(HasSubstr("'result/evaluation' is not a regular file")));
    EXPECT_EQ(text_of(folder_ / "victim/ensemble.npy"), "mine");
    fs::remove(folder_ / "result/evaluation");
    EXPECT_EQ(score().exit_code, 0);
    expect_verified();
}

TEST_F(ScoredRun, HasNoGroupOfWhichAFileIsMissing) {
    run_and_die();
    fs::remove(folder_ / "result/groups/1/steps.csv");
    const Outcome refused = score();
    EXPECT_EQ(refused.exit_code, 7);
    EXPECT_THAT(refused.error, HasSubstr("(group 1: it has no 'result/groups/1/steps.csv')"));
    EXPECT_EQ(score({"--allow-partial"}).exit_code, 7);
    expect_verified();
}

TEST_F(ScoredRun, HasOnlyTheReasonOfAGroupWhosePredictionsAreDamaged) {
    run_and_die();
    const fs::path predictions = folder_ / "result/groups/0/predictions.npy";
    write(predictions, text_of(predictions) + "x");
    EXPECT_EQ(score({"--allow-partial"}).exit_code, 7);
    EXPECT_TRUE(fs::exists(folder_ / "result/attempts/1/groups/0/record.json"));
    EXPECT_FALSE(fs::exists(folder_ / "result/groups/0/record.json"));
    const Json group = result()["work"]["groups"][0];
    EXPECT_THAT(group["failure"].get<std::string>(), HasSubstr("does not have the digest"));
    EXPECT_EQ(group["iterations"], 0);
    expect_verified();
}

TEST_F(ScoredRun, IsRejectedWhereTheTestSamplesAreNotThoseOfTheTraining) {
    run_and_die();
    const fs::path samples = folder_ / "set/val";
    const fs::path first = samples / "0000_disc_stripes";
    const std::vector<fs::path> classes{fs::directory_iterator(samples), {}};
    for (const fs::path& one : classes) {
        if (one == first) continue;
        for (const char* picture : {"000001.jpg", "000002.jpg"}) {
            fs::rename(one / picture, first / (one.filename().string() + picture));
        }
    }
    const Outcome outcome = score();
    EXPECT_EQ(outcome.exit_code, 4) << outcome.out;
    EXPECT_THAT(outcome.error,
                HasSubstr("result: the run began with other training or test samples"));
    EXPECT_TRUE(is_unscored());
}

TEST_F(ScoredRun, IsRejectedIfAModelDoesNotHaveTheQualityOfItsRecord) {
    run_and_die();
    Json record = json_of(folder_ / "result/groups/1/record.json");
    record["quality"] = 0.9375;
    write(folder_ / "result/groups/1/record.json", record.dump());
    const Outcome outcome = score();
    EXPECT_EQ(outcome.exit_code, 4) << outcome.out;
    EXPECT_THAT(
        outcome.error,
        HasSubstr("the stored top_1_accuracy is 0.9375, but the current test samples give "));
    EXPECT_TRUE(is_unscored());
}

TEST_F(ScoredRun, IsUnfinishedUntilItsManifestIsThere) {
    run_and_die();
    ASSERT_EQ(score().exit_code, 0);
    fs::remove(folder_ / "result/manifest.sha256");
    const Outcome status = cli::run_in(folder_.path(), {"status", "result"});
    EXPECT_EQ(status.exit_code, 6);
    EXPECT_THAT(last_line(status.out), HasSubstr("STATUS UNFINISHED  groups=2 finished=2"));
    EXPECT_EQ(score().exit_code, 0);
    expect_verified();
}

TEST_F(ScoredRun, WaitsInAJobForTheLockOfANodeThatDied) {
    run_and_die();
    const std::string script = fmt::format(
        "flock result/config.yaml -c 'touch locked; "
        "until grep -q waiting said || [ -e over ]; do sleep 0.02; done' 2> /dev/null & "
        "until [ -e locked ]; do sleep 0.02; done; "
        "SLURM_JOB_ID=7 {} score result 2> said; code=$?; touch over; cat said >&2; exit $code",
        cli::environment("HPCAI500_BINARY"));
    const Outcome outcome = cli::execute_in(folder_.path(), {"bash", "-c", script});
    EXPECT_EQ(outcome.exit_code, 0) << outcome.error;
    EXPECT_THAT(
        messages(outcome),
        testing::ElementsAre("hpcai500: result: another program uses it, or used it on a node that "
                             "died; waiting up to 180 s for its lock"));
}

TEST_F(ScoredRun, IsThatOfOneRunWithItsOwnConfiguration) {
    EXPECT_EQ(score().exit_code, 2) << "there is no run";
    const Outcome stopped = run({folder_.path(), 2, {"run.time_limit_seconds=0.001"}});
    EXPECT_EQ(stopped.exit_code, 8) << stopped.error;
    const Outcome none = score({"--allow-partial"});
    EXPECT_EQ(none.exit_code, 5);
    EXPECT_THAT(none.error, HasSubstr("(group 0: stopped at step 1 by run.time_limit_seconds"));
    EXPECT_THAT(none.error, HasSubstr("; has a checkpoint of step 1; group 1: stopped at step 1"));
    std::string config = text_of(folder_ / "result/config.yaml");
    const std::string rate = "\n  learning_rate: ";
    write(folder_ / "result/config.yaml", config.insert(config.find(rate) + rate.size(), "1"));
    const Outcome other = score();
    EXPECT_EQ(other.exit_code, 2);
    EXPECT_THAT(other.error, HasSubstr("result/config.yaml: differs from the configuration"));
    write(folder_ / "result/launch.json", "{}");
    EXPECT_THAT(score().error, HasSubstr("'result/launch.json': schema"));
}

}  // namespace
}  // namespace hpcai::end_to_end
