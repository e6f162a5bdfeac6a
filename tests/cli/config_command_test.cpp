// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include <hpcai/config/writer.hpp>

#include "child_process.hpp"

namespace hpcai::cli {
namespace {

namespace fs = std::filesystem;

void write(const fs::path& path, const std::string& text) {
    std::ofstream(path, std::ios::binary) << text;
}

TEST(ConfigPrint, ReadsItsOwnOutputForEveryReadyConfiguration) {
    const TemporaryFolder folder;
    int files = 0;
    for (const auto& entry : fs::directory_iterator(source("configs"))) {
        if (entry.is_directory()) continue;
        const Outcome first = run({"config", "print", "--config", entry.path().string()});
        ASSERT_EQ(first.exit_code, 0) << first.error;
        write(folder / "printed.yaml", first.out);
        const Outcome second =
            run({"config", "print", "--config", (folder / "printed.yaml").string()});
        EXPECT_EQ(second.exit_code, 0) << second.error;
        EXPECT_EQ(second.out, first.out) << entry.path();
        ++files;
    }
    EXPECT_GE(files, 3);
}

TEST(ConfigPrint, TakesManyChangesOnTopOfAFile) {
    const Outcome outcome = run({"config", "print", "--config", source("configs/smoke.yaml"),
                                 "--set", "training.batch_size=24", "--set=run.seed=7", "--json"});
    ASSERT_EQ(outcome.exit_code, 0) << outcome.error;
    const auto json = nlohmann::json::parse(outcome.out);
    EXPECT_EQ(json["training"]["batch_size"], 24);
    EXPECT_EQ(json["run"]["seed"], 7);
    EXPECT_EQ(json["run"]["name"], "smoke");
}

TEST(ConfigPrint, ShowsTheDefaultsWithoutAFile) {
    const Outcome outcome = run({"config", "print"});
    EXPECT_EQ(outcome.exit_code, 0) << outcome.error;
    EXPECT_NE(outcome.out.find("batch_size: 256"), std::string::npos) << outcome.out;
}

TEST(ConfigPrint, RejectsWrongFilesWithTheirPlace) {
    const TemporaryFolder folder;
    write(folder / "f.yaml", "training:\n  batch_sise: 8\n");
    expect_refused(run_in(folder.path(), {"config", "print", "--config", "f.yaml"}), 2,
                   "f.yaml:2:3: ");
    write(folder / "f.yaml", "run:\n  seed: 1\n  seed: 2\n");
    expect_refused(run_in(folder.path(), {"config", "print", "--config", "f.yaml"}), 2,
                   "f.yaml:3:3: ");
    expect_refused(run_in(folder.path(), {"config", "print", "--config", "."}), 2, "folder");
    expect_refused(run({"config", "print", "--set", "training.precision=fp23"}), 2, "fp32");
}

TEST(ConfigExplain, PrintsTheConfigurationsDocument) {
    EXPECT_TRUE(run({"config", "explain", "--markdown"}).out == config::markdown());
}

TEST(ConfigExplain, ExplainsOneKeyASectionOrAll) {
    const std::string key = run({"config", "explain", "training.batch_size"}).out;
    const std::string section = run({"config", "explain", "training"}).out;
    const std::string all = run({"config", "explain"}).out;
    EXPECT_NE(key.find("default: 256"), std::string::npos) << key;
    EXPECT_NE(section.find(key), std::string::npos) << section;
    EXPECT_NE(all.find(section), std::string::npos) << all;
}

TEST(ConfigExplain, SuggestsTheNearestSectionOrKey) {
    const auto expect_suggestion = [](const char* given, const std::string& name) {
        expect_refused(run({"config", "explain", given}), 2, "; did you mean '" + name + "'?");
    };
    expect_suggestion("bagg", "bagging");
    expect_suggestion("bagging.sub", "subsample_fraction");
    expect_suggestion("learning_rat", "training.learning_rate");
    expect_suggestion("subsample", "bagging.subsample_fraction");
    expect_refused(run({"config", "explain", "zebra"}), 2, "expected a section (run, submission,");
}

TEST(ConfigSchema, IsJsonThatKnowsEverySection) {
    const auto schema = nlohmann::json::parse(run({"config", "schema"}).out);
    for (const char* section : {"run", "workload", "bagging", "data", "training"}) {
        EXPECT_TRUE(schema["properties"].contains(section)) << section;
    }
}

TEST(Output, ThatCannotBeWrittenIsAnError) {
    const TemporaryFolder folder;
    const std::string command = environment("HPCAI500_BINARY") + " config schema >/dev/full 2>" +
                                (folder / "error").string();
    const int status = std::system(command.c_str());
    EXPECT_EQ(WEXITSTATUS(status), 2);
    EXPECT_EQ(text_of(folder / "error"), "hpcai500: standard output: cannot be written\n");
}

}  // namespace
}  // namespace hpcai::cli
