// SPDX-License-Identifier: Apache-2.0
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <hpcai/base/error.hpp>
#include <hpcai/storage/file.hpp>
#include <hpcai/storage/manifest.hpp>
#include <hpcai/storage/sha256.hpp>

#include "temporary_folder.hpp"

namespace hpcai::storage {
namespace {

namespace fs = std::filesystem;

std::string content_of(const fs::path& path) {
    std::ifstream in(path);
    return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

TEST(PendingPath, AFileReplacesTheOldOneAtCommit) {
    const TemporaryFolder folder;
    std::ofstream(folder / "x") << "old";
    PendingPath pending(folder / "x");
    std::ofstream(pending.path()) << "new";
    EXPECT_EQ(content_of(folder / "x"), "old");
    pending.commit();
    EXPECT_EQ(content_of(folder / "x"), "new");
}

TEST(PendingPath, IsRemovedWithoutCommit) {
    const TemporaryFolder folder;
    {
        const PendingPath pending(folder / "set");
        fs::create_directory(pending.path());
        std::ofstream(pending.path() / "a") << "a";
    }
    EXPECT_TRUE(fs::is_empty(folder / "."));
}

TEST(PendingPath, AFolderReplacesOnlyAnEmptyFolder) {
    const TemporaryFolder folder;
    for (const bool empty : {true, false}) {
        const fs::path target = folder / (empty ? "empty" : "full");
        fs::create_directory(target);
        if (!empty) std::ofstream(target / "mine") << "mine";
        PendingPath pending(target / "");
        fs::create_directory(pending.path());
        std::ofstream(pending.path() / "a") << "a";
        if (empty) {
            pending.commit();
            EXPECT_EQ(content_of(target / "a"), "a");
        } else {
            EXPECT_THROW(pending.commit(), Error);
            EXPECT_FALSE(fs::exists(target / "a"));
        }
    }
}

TEST(PendingPath, RejectsPlacesThatCannotBeReplaced) {
    const TemporaryFolder folder;
    fs::create_directory(folder / "real");
    fs::create_directory_symlink(folder / "real", folder / "link");
    fs::create_symlink(folder / "nothing", folder / "dangling");
    const auto rejection = [](const fs::path& target) {
        return error_of(ExitCode::usage, [&] { const PendingPath pending(target); });
    };
    EXPECT_NE(rejection(folder / "link").find("symbolic link"), std::string::npos);
    EXPECT_NE(rejection(folder / "link/").find("symbolic link"), std::string::npos);
    EXPECT_NE(rejection(folder / "dangling").find("symbolic link"), std::string::npos);
    EXPECT_NE(rejection(folder / "real/.").find("the name of a file or folder"), std::string::npos);
    EXPECT_NE(rejection("..").find("the name of a file or folder"), std::string::npos);
    EXPECT_NE(rejection("/proc").find("mount point"), std::string::npos);
}

TEST(PendingPath, LeavesAFolderThatAnotherProcessMakes) {
    const TemporaryFolder folder;
    fs::path made;
    {
        const PendingPath pending(folder / "set");
        made = pending.path();
    }
    fs::create_directory(made);
    EXPECT_NE(error_of(ExitCode::usage, [&] { const PendingPath pending(folder / "set"); })
                  .find("remove it unless another program writes to it"),
              std::string::npos);
    EXPECT_TRUE(fs::exists(made));
}

TEST(Manifest, AcceptsEveryFormOfALineOfSha256sum) {
    const TemporaryFolder folder;
    std::ofstream(folder / "a") << "one";
    std::ofstream(folder / "b\\c") << "one";
    const std::string sum = sha256_hex_of_file(folder / "a");
    for (const char* rest : {"  a\n", " *a\n", "  ./a\n", " *./a\r\n", "  a"}) {
        std::ofstream(folder / kManifestName) << sum << rest;
        EXPECT_TRUE(matches_manifest(folder / "a")) << rest;
    }
    std::ofstream(folder / kManifestName) << '\\' << sum << " *./b\\\\c\r\n";
    EXPECT_TRUE(matches_manifest(folder / "b\\c"));
    for (const char* rest : {"  A\n", "  x/a\n", "  aa\n"}) {
        std::ofstream(folder / kManifestName) << sum << rest;
        EXPECT_FALSE(matches_manifest(folder / "a")) << rest;
    }
    for (const char* rest : {" a\n", "\n", "", "  \n", " *\r\n", "  ./\n", "  ././"}) {
        std::ofstream(folder / kManifestName) << sum << rest;
        EXPECT_THAT(error_of(ExitCode::data, [&] { matches_manifest(folder / "a"); }),
                    testing::HasSubstr("has a line without a path"))
            << rest;
    }
}

TEST(Manifest, ReportsWhetherAFileIsTheListedOne) {
    const TemporaryFolder folder;
    std::ofstream(folder / "a b\\c") << "one";
    EXPECT_FALSE(matches_manifest(folder / "a b\\c"));
    write_manifest(folder / ".");
    std::ofstream(folder / "later") << "two";
    EXPECT_TRUE(matches_manifest(folder / "a b\\c"));
    EXPECT_FALSE(matches_manifest(folder / "later"));
    std::ofstream(folder / "a b\\c") << "other";
    EXPECT_THROW(matches_manifest(folder / "a b\\c"), Error);
    std::ofstream(folder / kManifestName) << std::string(64, 'g') << "  later\n";
    EXPECT_THROW(matches_manifest(folder / "later"), Error);
}

}  // namespace
}  // namespace hpcai::storage
