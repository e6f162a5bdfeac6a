// SPDX-License-Identifier: Apache-2.0
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <hpcai/results/result_directory.hpp>
#include <hpcai/results/result_layout.hpp>

#include "storage/temporary_folder.hpp"

namespace hpcai::results {
namespace {

namespace fs = std::filesystem;

class Warnings final : public Logger {
public:
    void write(Severity, std::string_view message) override { lines.emplace_back(message); }
    std::vector<std::string> lines;
};

class LinkLatest : public testing::Test {
protected:
    std::vector<std::string> link(const fs::path& output, int repetitions = 1,
                                  int repetition = 1) const {
        context::RunContext context{
            .controller = plan::ParallelismController({.ranks = 1, .groups = 1, .degree = 1},
                                                      plan::fill_nodes(1, 1)),
            .output = output};
        context.launch.repetitions = repetitions;
        context.launch.repetition = repetition;
        Warnings log;
        link_latest(context, log);
        return log.lines;
    }

    storage::TemporaryFolder folder_;
    fs::path latest_ = folder_ / "latest";
};

TEST_F(LinkLatest, LeadsToTheNewestResultAndLeavesNoOtherFile) {
    for (const auto& [name, target] : {std::pair{"first", "first"},
                                       {"second", "second"},
                                       {"third/", "third"},
                                       {"./fourth/.", "fourth"},
                                       {"latest", "fourth"}}) {  // no link to itself
        EXPECT_TRUE(link(folder_ / name).empty()) << name;
        EXPECT_EQ(fs::read_symlink(latest_), target);
    }
    EXPECT_EQ(std::distance(fs::directory_iterator(folder_.path()), {}), 1);
}

TEST_F(LinkLatest, LeadsToTheFolderOfAllRepetitions) {
    EXPECT_TRUE(link(folder_ / "runs/repetition_1", 3).empty());
    EXPECT_EQ(fs::read_symlink(latest_), "runs");
    EXPECT_TRUE(link(folder_ / "newer").empty());
    EXPECT_TRUE(link(folder_ / "runs/repetition_2", 3, 2).empty());
    EXPECT_EQ(fs::read_symlink(latest_), "newer") << "a resumed series is not the newest result";
}

TEST_F(LinkLatest, LeavesAFileOfTheUserAndWarns) {
    std::ofstream(latest_) << "mine";
    const std::vector<std::string> warnings = link(folder_ / "result");
    ASSERT_EQ(warnings.size(), 1U);
    EXPECT_NE(warnings[0].find("latest is not a symbolic link"), std::string::npos) << warnings[0];
    EXPECT_TRUE(fs::is_regular_file(fs::symlink_status(latest_)));
}

TEST_F(LinkLatest, WarnsIfTheFolderCannotBeWritten) {
    const std::vector<std::string> warnings = link(folder_ / "missing/result");
    ASSERT_EQ(warnings.size(), 1U);
    EXPECT_NE(warnings[0].find("latest cannot be made a link"), std::string::npos) << warnings[0];
}

TEST_F(LinkLatest, NeedsAParent) {
    EXPECT_TRUE(link("result-without-parent").empty());
    EXPECT_FALSE(fs::exists(fs::symlink_status("latest")));
}

TEST_F(LinkLatest, IsReplacedByThePathOfTheRunToWhichItLeads) {
    fs::create_directory(folder_ / "a");
    link(folder_ / "a");
    EXPECT_EQ(behind_latest(latest_), folder_ / "a");
    EXPECT_EQ(behind_latest(latest_ / ""), folder_ / "a");
    EXPECT_EQ(behind_latest(folder_ / "a"), folder_ / "a");
    fs::create_directory_symlink("a", folder_ / "mine");
    EXPECT_EQ(behind_latest(folder_ / "mine"), folder_ / "mine") << "no later run replaces it";
}

}  // namespace
}  // namespace hpcai::results
