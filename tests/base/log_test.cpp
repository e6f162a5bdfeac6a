// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <regex>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <hpcai/base/error.hpp>
#include <hpcai/base/log.hpp>
#include <hpcai/base/progress.hpp>
#include <hpcai/base/text.hpp>

namespace hpcai {
namespace {

namespace fs = std::filesystem;

class LogFile : public ::testing::Test {
protected:
    LogFile() : folder_(fs::temp_directory_path() / fmt::format("hpcai_log_{}", getpid())) {
        fs::create_directories(folder_);
    }
    ~LogFile() override { fs::remove_all(folder_); }

    static std::vector<std::string> lines_of(const fs::path& path) {
        std::ifstream file(path);
        std::vector<std::string> lines;
        for (std::string line; std::getline(file, line);) lines.push_back(line);
        return lines;
    }

    fs::path folder_;
};

TEST(Printable, EscapesControlCharactersAndKeepsUtf8) {
    EXPECT_EQ(printable("a\nb\tc\x1b[31m\x7f"), "a\\nb\\tc\\x1b[31m\\x7f");
    EXPECT_EQ(printable("caf\u00e9 100%"), "caf\u00e9 100%");
    EXPECT_EQ(printable("caf\xe9 \xc3"), "caf\\xe9 \\xc3");
    EXPECT_EQ(printable("\xc2\x9b\x33\x31m"), "\\xc2\\x9b31m") << "starts a colour in a terminal";
}

TEST_F(LogFile, HoldsOneLabelledLinePerMessageAsSoonAsItIsWritten) {
    const fs::path path = folder_ / "groups" / "rank1.log";
    const auto logger = make_logger("group 0 rank 1", path.string());
    logger->info("step {} of {}", 3, 7);
    logger->warn("100% {{braces}}");
    logger->error("cannot read '{}'", "evil\nforged line");
    const auto lines = lines_of(path);
    ASSERT_EQ(lines.size(), 3u);
    const std::string stamp = R"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z )";
    EXPECT_TRUE(
        std::regex_match(lines[0], std::regex(stamp + R"(info \[group 0 rank 1\] step 3 of 7)")))
        << lines[0];
    EXPECT_TRUE(std::regex_match(
        lines[1], std::regex(stamp + R"(warning \[group 0 rank 1\] 100% \{braces\})")))
        << lines[1];
    EXPECT_TRUE(std::regex_match(
        lines[2],
        std::regex(stamp + R"(error \[group 0 rank 1\] cannot read 'evil\\nforged line')")))
        << lines[2];
}

TEST_F(LogFile, IsAppendedTo) {
    const fs::path path = folder_ / "run.log";
    make_logger("first", path.string())->info("one");
    make_logger("second", path.string())->info("two");
    EXPECT_EQ(lines_of(path).size(), 2u);
}

TEST_F(LogFile, ThatCannotBeOpenedIsAUsageError) {
    std::ofstream(folder_ / "file") << "not a folder";
    const std::string path = (folder_ / "file" / "run.log").string();
    try {
        make_logger("x", path);
        FAIL() << "opened " << path;
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ExitCode::usage);
        EXPECT_NE(std::string(error.what()).find(path), std::string::npos);
    }
}

TEST(Console, ReceivesLogLinesOnStandardErrorOnly) {
    ::testing::internal::CaptureStdout();
    ::testing::internal::CaptureStderr();
    make_logger("rank 0", "")->warn("look here");
    EXPECT_EQ(::testing::internal::GetCapturedStdout(), "");
    EXPECT_NE(::testing::internal::GetCapturedStderr().find("warning [rank 0] look here\n"),
              std::string::npos);
}

TEST(Console, ErasesTheLiveLineOfATerminal) {
    const int terminal = ::posix_openpt(O_RDWR | O_NOCTTY);
    ASSERT_TRUE(terminal >= 0 && ::grantpt(terminal) == 0 && ::unlockpt(terminal) == 0);
    const int end = ::open(::ptsname(terminal), O_RDWR | O_NOCTTY);
    ASSERT_GE(end, 0);
    const int standard_error = ::dup(STDERR_FILENO);
    ::dup2(end, STDERR_FILENO);
    ProgressLine line(std::cerr, {.live = true});
    line.update({.step = 1, .steps = 2, .loss = 2.5, .seconds_left = -1}, 0);
    make_logger("rank 0", "")->warn("look here");
    ::dup2(standard_error, STDERR_FILENO);
    std::string text;
    pollfd ready{terminal, POLLIN, 0};
    ASSERT_EQ(::poll(&ready, 1, 10'000), 1);
    for (char letter = 0; letter != '\n' && ::read(terminal, &letter, 1) == 1;) text += letter;
    for (const int file : {terminal, end, standard_error}) ::close(file);
    const std::string erase = R"(\r\x1b\[K)", stamp = R"(\d{4}-\d\d-\d\dT\S+Z )";
    EXPECT_TRUE(std::regex_match(
        text, std::regex("\r" + std::string(R"(step 1/2  loss 2\.5000  0\.0 images/s\s*)") + erase +
                         stamp + R"(warning \[rank 0\] look here\r\n)")))
        << printable(text);
}

}  // namespace
}  // namespace hpcai
