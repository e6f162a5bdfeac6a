// SPDX-License-Identifier: Apache-2.0
#include <fstream>
#include <memory>

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <hpcai/storage/file_lock.hpp>

#include "temporary_folder.hpp"

namespace hpcai::storage {
namespace {

using State = FileLock::State;

TEST(FileLock, IsHeldByOneAtATime) {
    const TemporaryFolder folder;
    const auto path = folder / "config.yaml";
    std::ofstream(path) << "run: {}\n";
    auto first = std::make_unique<FileLock>(path);
    EXPECT_EQ(first->state(), State::held);
    EXPECT_EQ(FileLock(path).state(), State::taken);
    first.reset();
    EXPECT_EQ(FileLock(path).state(), State::held);
}

TEST(FileLock, IsSharedByAllThatRequestASharedLock) {
    using Kind = FileLock::Kind;
    const TemporaryFolder folder;
    const auto path = folder / "config.yaml";
    std::ofstream(path) << "run: {}\n";
    auto first = std::make_unique<FileLock>(path);
    EXPECT_EQ(FileLock(path, Kind::shared).state(), State::taken);
    first->downgrade();
    EXPECT_EQ(first->state(), State::held);
    auto second = std::make_unique<FileLock>(path, Kind::shared);
    EXPECT_EQ(second->state(), State::held);
    EXPECT_EQ(FileLock(path).state(), State::taken);
    first.reset();
    EXPECT_EQ(FileLock(path).state(), State::taken) << "the second still has it";
    second.reset();
    EXPECT_EQ(FileLock(path).state(), State::held);
}

TEST(FileLock, EndsWithItsProcess) {
    const TemporaryFolder folder;
    const auto path = folder / "config.yaml";
    std::ofstream(path) << "run: {}\n";
    const pid_t child = ::fork();
    if (child == 0) {
        const FileLock lock(path);
        ::_exit(lock.state() == State::held ? 7 : 1);  // no destructor runs
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    EXPECT_EQ(WEXITSTATUS(status), 7);
    EXPECT_EQ(FileLock(path).state(), State::held);
}

TEST(FileLock, RejectsAMissingFile) {
    const TemporaryFolder folder;
    const std::string message =
        error_of(ExitCode::data, [&] { const FileLock lock(folder / "none"); });
    EXPECT_NE(message.find("none': No such file"), std::string::npos) << message;
}

}  // namespace
}  // namespace hpcai::storage
