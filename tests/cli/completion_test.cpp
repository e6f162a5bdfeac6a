// SPDX-License-Identifier: Apache-2.0
#include "child_process.hpp"

namespace hpcai::cli {
namespace {

using Words = std::vector<std::string>;

std::string completions(const Words& words) {
    const TemporaryFolder folder;
    Words all{"completion", "words"};
    all.insert(all.end(), words.begin(), words.end());
    return run_in(folder.path(), all).out;
}

TEST(Completion, OffersCommandsAndOptions) {
    EXPECT_EQ(completions({"comp"}), "compare\ncompletion\n");
    EXPECT_EQ(completions({"data", "sh"}), "show\n");
    EXPECT_EQ(completions({"rank", "results", "--un"}), "--unverified\n");
    EXPECT_EQ(completions({"--conf"}), "--config\n") << "an option of the default command";
    EXPECT_EQ(completions({"rank", "x"}), "");
}

TEST(Completion, OffersTheValuesOfAnOption) {
    EXPECT_EQ(completions({"rank", "--format", ""}), "text\ncsv\njson\nhtml\n");
    EXPECT_EQ(completions({"completion", ""}), "bash\nzsh\nfish\n") << "a positional argument";
    EXPECT_EQ(completions({"completion", "bash", ""}), "") << "only one";
    EXPECT_EQ(completions({"rank", "--output", ""}), "") << "a file";
    EXPECT_EQ(completions({"rank", "--output", "rank", "--u"}), "--unverified\n");
    EXPECT_EQ(completions({"rank", "--unverified", "--for"}), "--format\n");
}

TEST(Completion, OffersKeysAndTheirValues) {
    EXPECT_EQ(completions({"--set", "training.prec"}), "training.precision=\n");
    EXPECT_EQ(completions({"plan", "--set", "training.precision=f"}),
              "training.precision=fp32\ntraining.precision=fp16\n");
    EXPECT_EQ(completions({"run", "--set", "run.deterministic=t"}), "run.deterministic=true\n");
    EXPECT_EQ(completions({"run", "--set", "bagging.M="}), "bagging.M=auto\n");
}

TEST(Completion, OffersMachinesAndWhatCanBeExplained) {
    EXPECT_EQ(completions({"plan", "--machine", "h"}), "h100\nh200\n");
    EXPECT_EQ(completions({"plan", "--roofline", "h"}), "") << "a file";
    EXPECT_EQ(completions({"config", "explain", "bag"}).substr(0, 18), "bagging\nbagging.M\n");
    EXPECT_EQ(completions({"config", "explain", "run.see"}), "run.seed\n");
    EXPECT_EQ(completions({"config", "explain", "bagging", ""}), "") << "only one";
}

/// Writes the script of `shell` to the file `script`, runs `commands` there, and returns the
/// output.
std::string in_shell(const std::string& shell, const std::string& commands) {
    const TemporaryFolder folder;
    std::filesystem::create_symlink(environment("HPCAI500_BINARY"), folder / "hpcai500");
    const Outcome outcome = execute_in(
        folder.path(), {shell, "-c", "hpcai500 completion " + shell + " > script; " + commands},
        {"PATH=" + folder.path().string() + ":" + environment("PATH")});
    EXPECT_EQ(outcome.error, "");
    return outcome.out;
}

bool is_installed(const std::string& shell) {
    const TemporaryFolder folder;
    return execute_in(folder.path(), {"sh", "-c", "command -v " + shell}).exit_code == 0;
}

TEST(Completion, WorksInBashWhichSplitsWordsAtTheEqualsSign) {
    const auto in_bash = [](const std::string& line) {
        return in_shell("bash", ". ./script; compopt() { :; }; COMP_LINE='" + line +
                                    "'; COMP_POINT=${#COMP_LINE}; _hpcai500; "
                                    "echo \"${COMPREPLY[@]}\"");
    };
    EXPECT_EQ(in_bash("hpcai500 rank --format "), "text csv json html\n");
    EXPECT_EQ(in_bash("hpcai500 --set training.prec"), "training.precision=\n");
    EXPECT_EQ(in_bash("hpcai500 --set training.precision=b"), "bf16\n");
}

TEST(Completion, WorksInFish) {
    if (!is_installed("fish")) GTEST_SKIP() << "fish is not installed";
    EXPECT_EQ(in_shell("fish", ". ./script; complete -C 'hpcai500 data sh'"), "show\n");
}

TEST(Completion, ParsesInZsh) {
    if (!is_installed("zsh")) GTEST_SKIP() << "zsh is not installed";
    EXPECT_EQ(in_shell("zsh", "zsh -n script"), "");
}

TEST(Completion, RejectsAnotherShell) {
    const TemporaryFolder folder;
    expect_refused(run_in(folder.path(), {"completion", "tcsh"}), 2,
                   "completion: SHELL: expected bash, zsh or fish, got 'tcsh'");
}

}  // namespace
}  // namespace hpcai::cli
