// SPDX-License-Identifier: Apache-2.0
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include <hpcai/base/error.hpp>
#include <hpcai/storage/manifest.hpp>
#include <hpcai/storage/pending_path.hpp>

#include "temporary_folder.hpp"

namespace hpcai::storage {
namespace {

namespace fs = std::filesystem;

std::string content_of(const fs::path& path) {
    std::ifstream in(path);
    return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

TEST(PendingPath, AFileReplacesTheOldOneWhenItIsKept) {
    const TemporaryFolder folder;
    std::ofstream(folder / "x") << "old";
    PendingPath pending(folder / "x");
    std::ofstream(pending.path()) << "new";
    EXPECT_EQ(content_of(folder / "x"), "old");
    pending.keep();
    EXPECT_EQ(content_of(folder / "x"), "new");
}

TEST(PendingPath, WhatIsNotKeptIsRemoved) {
    const TemporaryFolder folder;
    {
        const PendingPath pending(folder / "set");
        fs::create_directory(pending.path());
        std::ofstream(pending.path() / "a") << "a";
    }
    EXPECT_TRUE(fs::is_empty(folder / "."));
}

TEST(PendingPath, AFolderTakesThePlaceOfAnEmptyOneOnly) {
    const TemporaryFolder folder;
    for (const bool empty : {true, false}) {
        const fs::path target = folder / (empty ? "empty" : "full");
        fs::create_directory(target);
        if (!empty) std::ofstream(target / "mine") << "mine";
        PendingPath pending(target / "");
        fs::create_directory(pending.path());
        std::ofstream(pending.path() / "a") << "a";
        if (empty) {
            pending.keep();
            EXPECT_EQ(content_of(target / "a"), "a");
        } else {
            EXPECT_THROW(pending.keep(), Error);
            EXPECT_FALSE(fs::exists(target / "a"));
        }
    }
}

TEST(Manifest, TellsWhetherAFileIsTheListedOne) {
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
