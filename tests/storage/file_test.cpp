// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <set>

#include <sys/stat.h>
#include <unistd.h>

#include <hpcai/storage/file.hpp>
#include <hpcai/storage/manifest.hpp>
#include <hpcai/storage/sha256.hpp>

#include "temporary_folder.hpp"

namespace hpcai::storage {
namespace {

std::string contents(const std::filesystem::path& path) {
    return std::string(text_of(read_file_bytes(path, 1 << 20)));
}

std::size_t entries_of(const std::filesystem::path& folder) {
    std::size_t count = 0;
    for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder)) ++count;
    return count;
}

TEST(WriteFileDurably, ReplacesTheWholeFileAndLeavesNoOther) {
    TemporaryFolder folder;
    write_file_durably(folder / "a", "a long first text");
    const std::array parts{bytes_of("se"), bytes_of(""), bytes_of("cond")};
    write_file_durably(folder / "a", parts);
    EXPECT_EQ(contents(folder / "a"), "second");
    EXPECT_EQ(entries_of(folder.path()), 1U);
}

TEST(WriteFileDurably, GivesTheFileThePermissionsOfTheUsersMask) {
    TemporaryFolder folder;
    const mode_t before = ::umask(027);
    write_file_durably(folder / "a", "x");
    ::umask(before);
    struct stat status {};
    ASSERT_EQ(::stat((folder / "a").c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777U, 0640U);
}

TEST(WriteFileDurably, NamesThePathWhenTheFolderIsMissing) {
    TemporaryFolder folder;
    const auto path = folder / "none/a";
    const std::string message = error_of(ExitCode::usage, [&] { write_file_durably(path, "x"); });
    EXPECT_NE(message.find(path.string()), std::string::npos) << message;
    EXPECT_NE(message.find("No such file"), std::string::npos) << message;
}

TEST(WriteFileDurably, LeavesTheOldFileAndNoOtherWhenItCannotReplaceIt) {
    TemporaryFolder folder;
    std::filesystem::create_directory(folder / "a");
    write_file_durably(folder / "a/inside", "kept");
    error_of(ExitCode::usage, [&] { write_file_durably(folder / "a", "x"); });
    EXPECT_EQ(contents(folder / "a/inside"), "kept");
    EXPECT_EQ(entries_of(folder.path()), 1U);
}

TEST(WriteFileDurably, UsesAnotherNameIfATemporaryFileWasLeft) {
    TemporaryFolder folder;
    const std::string left_over = fmt::format(".a.{}-0.tmp", ::getpid());
    write_file_durably(folder / left_over, "other");
    write_file_durably(folder / "a", "mine");
    EXPECT_EQ(contents(folder / "a"), "mine");
    EXPECT_EQ(contents(folder / left_over), "other");
}

TEST(ReadFileBytes, RejectsMoreThanTheLimitWithoutReadingIt) {
    TemporaryFolder folder;
    write_file_durably(folder / "a", "12345");
    EXPECT_EQ(read_file_bytes(folder / "a", 5).size(), 5U);
    error_of(ExitCode::data, [&] { read_file_bytes(folder / "a", 4); });
}

TEST(ReadFileBytes, RejectsWhatIsNotARegularFile) {
    TemporaryFolder folder;
    const auto pipe = folder / "pipe";
    ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
    for (const auto& path : {folder.path(), pipe, folder / "none"}) {
        const std::string message = error_of(ExitCode::data, [&] { read_file_bytes(path, 100); });
        EXPECT_NE(message.find(path.string()), std::string::npos) << message;
    }
}

TEST(Sha256, GivesTheDigestsOfTheStandardsExamples) {
    // FIPS 180-2, appendix B, and the empty message.
    EXPECT_EQ(sha256_hex({}), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    EXPECT_EQ(sha256_hex(bytes_of("abc")),
              "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    EXPECT_EQ(sha256_hex(bytes_of("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq")),
              "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
}

TEST(Sha256, DoesNotDependOnThePiecesAndCanBeReused) {
    Sha256 hash;
    for (int round = 0; round < 2; ++round) {
        hash.update(bytes_of("a"));
        hash.update(bytes_of("bc"));
        EXPECT_EQ(hash.finish_hex(), sha256_hex(bytes_of("abc")));
    }
}

TEST(Sha256, OfAFileLargerThanOneReadEqualsThatOfItsBytes) {
    TemporaryFolder folder;
    const std::string text(3'000'001, 'x');
    write_file_durably(folder / "a", text);
    EXPECT_EQ(sha256_hex_of_file(folder / "a"), sha256_hex(bytes_of(text)));
}

TEST(Manifest, ListsEveryFileBelowSortedAndNotItself) {
    TemporaryFolder folder;
    std::filesystem::create_directories(folder / "groups/0");
    write_file_durably(folder / "result.json", "abc");
    write_file_durably(folder / "groups/0/log", "");
    std::filesystem::create_symlink("/etc/passwd", folder / "link");
    write_manifest(folder.path());
    write_manifest(folder.path());
    EXPECT_EQ(contents(folder / kManifestName),
              "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855  groups/0/log\n"
              "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad  result.json\n");
}

TEST(Manifest, IsAcceptedBySha256sumEvenForNamesItEscapes) {
    TemporaryFolder folder;
    for (const char* name : {"plain", "two words", "back\\slash", "new\nline", "*star"}) {
        write_file_durably(folder / name, name);
    }
    write_manifest(folder.path());
    const std::string check = fmt::format("cd '{}' && sha256sum --strict --check --quiet {}",
                                          folder.path().string(), kManifestName);
    EXPECT_EQ(std::system(check.c_str()), 0);
    write_file_durably(folder / "plain", "changed");
    EXPECT_NE(std::system((check + " >/dev/null 2>&1").c_str()), 0);
}

TEST(Manifest, OmitsWhatMatchesAPattern) {
    TemporaryFolder folder;
    for (const char* name : {"checkpoints/0/a", "groups/1/trials/12.safetensors", "groups/1/log",
                             "groups/1/trials/12.npy", "groups/1/trials/.12.npy.5-0.tmp"}) {
        std::filesystem::create_directories((folder / name).parent_path());
        write_file_durably(folder / name, name);
    }
    const std::string text = make_manifest(
        folder.path(),
        {"checkpoints/", "groups/*/trials/*.safetensors", "groups/*/trials/.*", "*/log", "trials"});
    std::set<std::string> names;
    for (const auto& [name, digest] : parse_manifest(text, "manifest")) names.insert(name);
    EXPECT_EQ(names, (std::set<std::string>{"groups/1/log", "groups/1/trials/12.npy"}));
}

TEST(Manifest, OfAMissingFolderNamesIt) {
    TemporaryFolder folder;
    const auto missing = folder / "none";
    const std::string message = error_of(ExitCode::data, [&] { write_manifest(missing); });
    EXPECT_NE(message.find(missing.string()), std::string::npos) << message;
}

}  // namespace
}  // namespace hpcai::storage
