// SPDX-License-Identifier: Apache-2.0
#include <regex>

#include <hpcai/results/run_status.hpp>
#include <hpcai/storage/sha256.hpp>

#include "result_edits.hpp"

/// Several runs in one invocation.
namespace hpcai::end_to_end {
namespace {

const std::string kSummary = "repetitions.json";

void expect_series_verified(const fs::path& directory, const std::string& begin) {
    for (const Outcome& outcome : {verify_by_program(directory), verify_by_script(directory)}) {
        EXPECT_EQ(outcome.exit_code, 0) << outcome.out << outcome.error;
        EXPECT_TRUE(outcome.out.starts_with(begin)) << outcome.out;
        EXPECT_TRUE(outcome.out.ends_with(
            "sha256=" + storage::sha256_hex_of_file(directory / kSummary) + "\n"))
            << outcome.out;
    }
}

/// Two runs of two groups of one rank.
class Repetitions : public testing::Test {
protected:
    static void SetUpTestSuite() {
        folder_ = new storage::TemporaryFolder();
        make_pictures(folder_->path());
        write(*folder_ / "tiny.yaml", kConfig);
        outcome_ = new Outcome(run_ranks(folder_->path(), 2, {"run.repeat=2"}));
        ASSERT_EQ(outcome_->exit_code, 0) << outcome_->error;
    }
    static void TearDownTestSuite() {
        delete folder_;
        delete outcome_;
    }

    static fs::path result(const std::string& name) { return *folder_ / ("result/" + name); }

    static storage::TemporaryFolder* folder_;
    static Outcome* outcome_;
};

storage::TemporaryFolder* Repetitions::folder_ = nullptr;
Outcome* Repetitions::outcome_ = nullptr;

TEST_F(Repetitions, AreCompleteResultsWithSeedsOfTheirOwn) {
    const nlohmann::json summary = json_of(result(kSummary));
    EXPECT_EQ(summary["requested"], 2);
    EXPECT_NE(text_of(result("config.yaml")).find("\n  repeat: 2\n"), std::string::npos);
    EXPECT_EQ(summary["stopped"], "");
    ASSERT_EQ(summary["repetitions"].size(), 2U);
    for (const int number : {1, 2}) {
        const fs::path directory = result("repetition_" + std::to_string(number));
        expect_verified(directory);
        const nlohmann::json record = json_of(directory / "result.json");
        EXPECT_EQ(record["workload"]["seed"], 2 + number);
        const nlohmann::json& row = summary["repetitions"][static_cast<std::size_t>(number - 1)];
        EXPECT_EQ(row["vflops"], record["scores"]["vflops"]);
        EXPECT_EQ(row["quality"], record["quality"]["ensemble"]);
        EXPECT_EQ(row["manifest"], storage::sha256_hex_of_file(directory / storage::kManifestName));
        const std::string printed = text_of(directory / "summary.txt");
        EXPECT_NE(outcome_->out.find(printed.substr(0, printed.find("RESULT "))),
                  std::string::npos);
    }
    EXPECT_TRUE(last_line(outcome_->out).starts_with("REPETITIONS 2 of 2  FLOPS="))
        << last_line(outcome_->out);
    EXPECT_EQ(messages(*outcome_), std::vector<std::string>());
}

TEST_F(Repetitions, AreWhatTheirSeedsGiveAlone) {
    const Outcome alone = run_ranks(folder_->path(), 2, {"run.seed=4"}, "alone");
    ASSERT_EQ(alone.exit_code, 0) << alone.error;
    const nlohmann::json second = json_of(result("repetition_2/result.json"));
    const nlohmann::json again = json_of(*folder_ / "alone/result.json");
    EXPECT_EQ(second["training_digest"], again["training_digest"]);
    EXPECT_NE(second["training_digest"],
              json_of(result("repetition_1/result.json"))["training_digest"]);
    EXPECT_EQ(second["config"], again["config"]);
}

TEST_F(Repetitions, AreVerifiedTogether) {
    expect_series_verified(result(""), "REPETITIONS 2 of 2 ");
}

TEST_F(Repetitions, AreAllComparedWithTheData) {
    const auto verify = [](const std::string& data) {
        return cli::run_in(folder_->path(), {"verify", "result", "--data", data, "--replay", "1"});
    };
    EXPECT_TRUE(verify("set").out.starts_with("agree: 24 training and 12 test samples "));
    fs::copy(*folder_ / "set", *folder_ / "other", fs::copy_options::recursive);
    fs::remove(
        fs::recursive_directory_iterator(*folder_ / "other/train/0000_disc_stripes")->path());
    const Outcome outcome = verify("other");
    EXPECT_EQ(outcome.exit_code, 10);
    for (const std::string run : {"repetition_1", "repetition_2"}) {
        const std::string line = run + "/result.json: workload.samples_sha256 is ";
        EXPECT_NE(outcome.out.find(line), std::string::npos) << outcome.out;
    }
}

TEST_F(Repetitions, AreDetectedWhereOneOrTheirSummaryWasChanged) {
    const std::vector<Edit> edits{
        {"median", kSummary, "vflops",
         [](const ResultCopy& copy) { copy.increase(kSummary, "/vflops/median"); }},
        {"deviation", kSummary, "training_seconds",
         [](const ResultCopy& copy) {
             copy.increase(kSummary, "/training_seconds/median_absolute_deviation");
         }},
        {"number of a run", kSummary, "repetitions[1].flops is",
         [](const ResultCopy& copy) { copy.increase(kSummary, "/repetitions/1/flops"); }},
        {"exit code", kSummary, "exit_code is",
         [](const ResultCopy& copy) { copy.set(kSummary, "/exit_code", 7); }},
        {"fewer runs than requested", kSummary, "has",
         [](const ResultCopy& copy) { copy.set(kSummary, "/requested", 5); }},
        {"score of a run", "repetition_2/result.json", "scores.vflops is",
         [](const ResultCopy& copy) {
             copy.increase("repetition_2/result.json", "/scores/vflops");
         }},
        {"changed configuration", "repetition_1/config.yaml", "",
         [](const ResultCopy& copy) {
             std::string config = text_of(copy.path() / "config.yaml");
             config.replace(config.find("epochs: 1"), 9, "epochs: 2");
             copy.put("config.yaml", config);
         }},
        {"removed configuration", "config.yaml", "",
         [](const ResultCopy& copy) { fs::remove(copy.path() / "config.yaml"); }},
        {"removed run", "repetition_2", "is missing",
         [](const ResultCopy& copy) { fs::remove_all(copy.path() / "repetition_2"); }},
        {"removed result of a run", "repetition_2/result.json", "is missing",
         [](const ResultCopy& copy) {
             for (const std::string name : {"result.json", "manifest.sha256"})
                 fs::remove(copy.path() / "repetition_2" / name);
         }},
        {"the first run twice", kSummary, "repetitions[1]",
         [](const ResultCopy& copy) {
             fs::remove_all(copy.path() / "repetition_2");
             fs::copy(copy.path() / "repetition_1", copy.path() / "repetition_2",
                      fs::copy_options::recursive);
         }},
        {"added file", "notes.txt", "exists",
         [](const ResultCopy& copy) { copy.put("notes.txt", "all was well"); }},
    };
    for (const Edit& edit : edits) {
        const ResultCopy copy(result(""));
        edit.apply(copy);
        const std::string line = edit.file + ": " + edit.finding;
        expect_found(verify_by_program(copy.path()), line, edit, "program");
        expect_found(verify_by_script(copy.path()), line, edit, "script");
    }
}

TEST_F(Repetitions, AreRankedByTheMedianRunAndCompared) {
    const Outcome ranking = cli::run_in(folder_->path(), {"rank", "result"});
    EXPECT_EQ(ranking.exit_code, 0) << ranking.error;
    EXPECT_TRUE(std::regex_search(ranking.out, std::regex("median\\s+of\\s+2\\s+runs")))
        << ranking.out;
    const Outcome mixture = cli::run_in(folder_->path(), {"rank", "tiny.yaml", ".", "result"});
    EXPECT_EQ(mixture.exit_code, 10);
    EXPECT_EQ(mixture.out, ranking.out) << "the same rows, without those that were skipped";
    EXPECT_NE(
        mixture.error.find(".: expected a result directory with its result.json; runs inside"),
        std::string::npos)
        << mixture.error;
    const ResultCopy copy(result(""));
    const Outcome twice = cli::run_in(folder_->path(), {"rank", "result", copy.path()});
    EXPECT_EQ(twice.exit_code, 10);
    EXPECT_EQ(twice.out, ranking.out);
    EXPECT_NE(twice.error.find(": is the same result as result, with manifest "), std::string::npos)
        << twice.error;
    copy.put("notes.txt", "all was well");
    const Outcome damaged =
        cli::run_in(folder_->path(), {"rank", "--unverified", copy.path(), "result"});
    EXPECT_EQ(damaged.error.find("is the same result"), std::string::npos)
        << "the copy does not verify: " << damaged.error;
    const Outcome same = cli::run_in(folder_->path(), {"compare", "result", "result"});
    EXPECT_EQ(same.exit_code, 0) << same.error;
    EXPECT_NE(same.out.find("rank sums of 2 and 2 runs"), std::string::npos) << same.out;
    EXPECT_EQ(same.out.find("FASTER"), std::string::npos) << same.out;
    const Outcome mixed =
        cli::run_in(folder_->path(), {"compare", "result/repetition_1", "result"});
    EXPECT_EQ(mixed.exit_code, 0) << mixed.error;
    EXPECT_EQ(mixed.out.find("rank sums"), std::string::npos) << mixed.out;
}

TEST_F(Repetitions, AreRowsOfATableAndLinkedFromAPage) {
    const Outcome table =
        cli::run_in(folder_->path(), {"table", ".", "result", "result/repetition_1"});
    EXPECT_EQ(table.exit_code, 10) << "the folder itself is no result: " << table.error;
    EXPECT_TRUE(table.out.starts_with("directory,schema,")) << table.out;
    EXPECT_NE(table.out.find(",config.training.learning_rate,"), std::string::npos);
    EXPECT_EQ(std::ranges::count(table.out, '\n'), 3) << table.out;
    EXPECT_NE(table.out.find("\nresult/repetition_2,"), std::string::npos) << table.out;
    fs::create_directory(*folder_ / "pages");
    const Outcome page = cli::run_in(
        folder_->path(), {"rank", "result", "--format", "html", "--output", "pages/all.html"});
    EXPECT_EQ(page.exit_code, 0) << page.error;
    const std::string html = text_of(*folder_ / "pages/all.html");
    EXPECT_NE(html.find("<a href=\"../result/repetition_"), std::string::npos) << html;
}

TEST_F(Repetitions, HaveTheirCommonConfigurationInAJunitReport) {
    const Outcome verified =
        cli::run_in(folder_->path(), {"verify", "result", "--junit", "junit.xml"});
    EXPECT_EQ(verified.exit_code, 0) << verified.out;
    EXPECT_NE(text_of(*folder_ / "junit.xml").find(" name=\"config.yaml\"></testcase>"),
              std::string::npos);
}

TEST_F(Repetitions, AreWatchedUntilTheLastOne) {
    const storage::TemporaryFolder copy;
    fs::copy(result("."), copy / "result", fs::copy_options::recursive);
    EXPECT_TRUE(results::read_status(copy / "result").is_final);
    nlohmann::json summary = json_of(copy / "result" / kSummary);
    summary["requested"] = 3;
    write(copy / "result" / kSummary, summary.dump());
    const results::RunStatus between = results::read_status(copy / "result");
    EXPECT_FALSE(between.is_final) << "the third begins soon";
    EXPECT_TRUE(between.text.starts_with("resume: " + resume_command(2, ""))) << between.text;
    fs::last_write_time(copy / "result" / kSummary,
                        fs::file_time_type::clock::now() - std::chrono::minutes(11));
    EXPECT_TRUE(results::read_status(copy / "result").is_final) << "the third has not begun";
    summary["repetitions"].erase(1);
    write(copy / "result" / kSummary, summary.dump());
    const results::RunStatus second = results::read_status(copy / "result");
    EXPECT_FALSE(second.is_final) << "the second is recorded soon";
    EXPECT_TRUE(second.text.starts_with("repetition 2 of 3\n")) << second.text;
}

TEST_F(Repetitions, AreScoredOneByOne) {
    const Outcome refused = cli::run_in(folder_->path(), {"score", "result"});
    EXPECT_EQ(refused.exit_code, 2);
    EXPECT_EQ(messages(refused),
              (std::vector<std::string>{
                  "hpcai500: result: expected one run, got several repetitions; name one of them, "
                  "such as result/repetition_1"}));
}

Outcome resume(const fs::path& folder, int ranks) {
    return cli::execute_in(
        folder, {cli::environment("HPCAI500_MPIRUN"), "--bind-to", "none", "-np",
                 std::to_string(ranks), cli::environment("HPCAI500_BINARY"), "resume", "result"});
}

TEST_F(Repetitions, AreMadeByResumeIfTheyHaveNotBegun) {
    const storage::TemporaryFolder copy;
    make_pictures(copy.path());
    fs::copy(result("."), copy / "result", fs::copy_options::recursive);
    fs::remove_all(copy / "result/repetition_2");
    fs::remove(copy / "result" / kSummary);
    const fs::path kept = copy / "result/repetition_1/groups/0/weights.safetensors";
    const auto before = fs::last_write_time(kept);
    const Outcome refused = resume(copy.path(), 1);
    EXPECT_EQ(refused.exit_code, 3) << refused.error;
    EXPECT_EQ(messages(refused),
              (std::vector<std::string>{"hpcai500: result: the run began with 2 ranks, not 1; "
                                        "start it as `" +
                                        resume_command(2) + "`"}));
    EXPECT_FALSE(fs::exists(copy / "result" / kSummary)) << "a rejected launch writes nothing";
    const Outcome end = resume(copy.path(), 2);
    ASSERT_EQ(end.exit_code, 0) << end.error;
    expect_series_verified(copy / "result", "REPETITIONS 2 of 2 ");
    EXPECT_EQ(fs::last_write_time(kept), before);
    const nlohmann::json made = json_of(copy / "result/repetition_2/result.json");
    EXPECT_EQ(made["training_digest"],
              json_of(result("repetition_2/result.json"))["training_digest"]);
    EXPECT_TRUE(made["work"]["groups"][0]["continuations"].empty());
}

TEST_F(Repetitions, AreListedAgainByResumeIfAllHaveResults) {
    const storage::TemporaryFolder copy;
    fs::copy(result("."), copy / "result", fs::copy_options::recursive);
    fs::remove(copy / "result" / kSummary);
    const Outcome refused = resume(copy.path(), 2);
    EXPECT_EQ(refused.exit_code, 2) << refused.error;
    EXPECT_EQ(messages(refused),
              (std::vector<std::string>{
                  "hpcai500: result: all 2 repetitions have a result, and repetitions.json lists "
                  "them; `hpcai500 verify` checks them"}));
    EXPECT_EQ(text_of(copy / "result" / kSummary), text_of(result(kSummary)));
}

class TroubledRepetitions : public testing::Test {
protected:
    void SetUp() override {
        make_pictures(folder_.path());
        write(folder_ / "tiny.yaml", kConfig);
    }
    storage::TemporaryFolder folder_;
};

TEST_F(TroubledRepetitions, ContinueAfterOneInWhichAGroupFailed) {
    // One wrong bit in the first run's second all-reduce ends its group of ranks 2 and 3.
    const Outcome outcome = run({folder_.path(),
                                 4,
                                 {"run.repeat=2", "bagging.P_degree=2", "run.audit_steps=1"},
                                 {"env", "LD_PRELOAD=" + cli::environment("HPCAI500_FLIP_BIT"),
                                  "HPCAI500_FLIP_RANK=3", "HPCAI500_FLIP_SUM=2"}});
    EXPECT_EQ(outcome.exit_code, 9) << outcome.error;
    const nlohmann::json summary = json_of(folder_ / "result" / kSummary);
    ASSERT_EQ(summary["repetitions"].size(), 2U) << outcome.error;
    EXPECT_EQ(summary["repetitions"][0]["status"], "INVALID");
    EXPECT_EQ(summary["repetitions"][0]["counted"], false);
    EXPECT_EQ(summary["repetitions"][1]["status"], "CUSTOM");
    EXPECT_EQ(summary["exit_code"], 9);
    EXPECT_EQ(summary["vflops"]["median"], summary["repetitions"][1]["vflops"]);
    expect_series_verified(folder_ / "result", "REPETITIONS 2 of 2 ");
}

TEST_F(TroubledRepetitions, AreAllMadeWhereNoGroupOfAnyFinishes) {
    for (const auto& entry : fs::recursive_directory_iterator(folder_ / "set/train")) {
        if (entry.is_regular_file()) fs::resize_file(entry.path(), 300);
    }
    const Outcome outcome = run_ranks(folder_.path(), 2, {"run.repeat=2"});
    EXPECT_EQ(outcome.exit_code, 4) << outcome.error;
    EXPECT_TRUE(last_line(outcome.out).starts_with("REPETITIONS 2 of 2  FLOPS=n/a"));
    expect_series_verified(folder_ / "result", "REPETITIONS 2 of 2  FLOPS=n/a");
}

TEST_F(TroubledRepetitions, KeepTheExistingRunsWhenTheJobEnds) {
    write(folder_ / "mortal.sh",
          "#!/bin/bash\nif [ \"${OMPI_COMM_WORLD_RANK:-$PMI_RANK}\" = 1 ]; then (\n"
          "  until [ -e result/repetition_2/groups/1/log.txt ]; do\n"
          "    kill -0 $$ || exit\n    sleep 0.02\n  done 2> /dev/null\n"
          "  kill -9 $$\n) & fi\n"
          // mpirun kills only its own child, so a program below a shell would continue.
          "exec \"$HPCAI500_BINARY\" \"$@\"\n");
    fs::permissions(folder_ / "mortal.sh", fs::perms::owner_all);
    Launch launch{folder_.path(), 2, {"run.repeat=3", "workload.epochs=100"}};
    launch.program = (folder_ / "mortal.sh").string();
    const Outcome outcome = run(launch);
    EXPECT_NE(outcome.exit_code, 0);
    const nlohmann::json summary = json_of(folder_ / "result" / kSummary);
    EXPECT_EQ(summary["requested"], 3);
    EXPECT_EQ(summary["repetitions"].size(), 1U);
    EXPECT_EQ(summary["stopped"], "repetition 2 has not ended");
    expect_series_verified(folder_ / "result", "REPETITIONS 1 of 3 ");
    std::vector<std::string> rank{cli::environment("HPCAI500_BINARY"), "rank", "result"};
    const auto ranking = [&] {
        return std::regex_replace(cli::execute_in(folder_.path(), rank).out, std::regex("\n +"),
                                  " ");
    };
    EXPECT_NE(ranking().find("; repetition 2 has not ended; `" + resume_command(2) +
                             "` resumes the runs\n"),
              std::string::npos)
        << ranking();
    rank.insert(rank.begin(), {"flock", "result/config.yaml"});
    EXPECT_NE(ranking().find("; repetition 2 has not ended\n"), std::string::npos) << ranking();
}

}  // namespace
}  // namespace hpcai::end_to_end
