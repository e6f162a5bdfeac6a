// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "staging.hpp"

/// Staging folders that another program changed: which files are used, replaced or kept.
namespace hpcai::data {
namespace {

namespace fs = std::filesystem;
using test::kKib;
using test::refused;
using test::stage_at_one_rank;
using test::Staged;
using testing::AllOf;
using testing::HasSubstr;
using tests::files_below;

class DamagedStage : public test::TwelveFiles {};

TEST_F(DamagedStage, CopiesAgainWhatIsDamagedInTheStage) {
    run();
    const std::int64_t size = static_cast<std::int64_t>(fs::file_size(training() / "pack-000002"));
    flip_byte(training() / "pack-000002", 400 * kKib);
    {
        const Staged again = run();
        expect_all(again);
        EXPECT_EQ(again.record.copied_bytes, size);
    }
    fs::resize_file(training() / "pack-000004", 10);
    expect_all(run());
}

TEST_F(DamagedStage, NoticesDamageAfterItsCheck) {
    const Staged staged = run();
    flip_byte(training() / "pack-000000", 10);
    EXPECT_EQ(staged.pictures->read(0), std::nullopt);
    EXPECT_EQ(staged.staging_lock->lost_copies(), 1);
    EXPECT_EQ(staged.pictures->read(1), shared_.bytes(1));
    EXPECT_EQ(staged.pictures->read(4), shared_.bytes(4));
    fs::remove(training() / "pack-000001");
    EXPECT_EQ(staged.pictures->read(3), std::nullopt);
    EXPECT_EQ(staged.pictures->read(4), std::nullopt);  // although it was intact before
    EXPECT_EQ(staged.pictures->read(0), std::nullopt);
    EXPECT_EQ(staged.staging_lock->lost_copies(), 3);
    fs::resize_file(training() / "pack-000002", 10);
    fs::remove(training() / "pack-000003.index");
    EXPECT_EQ(staged.pictures->read(6), std::nullopt);
    EXPECT_EQ(staged.pictures->read(8), std::nullopt);
}

TEST_F(DamagedStage, CopiesAgainWhatHasNoIndexOrADamagedOne) {
    run();
    const fs::path index = training() / "pack-000001.index";
    const test::Bytes sound = test::read_file_bytes(index);
    std::string text(sound.begin(), sound.end());
    const std::size_t digits = text.find("sha256\":[\"") + 10;
    text[digits] = text[digits] == '0' ? '1' : '0';
    test::write_file_bytes(index, {text.begin(), text.end()});
    expect_all(run());  // with another digest
    for (const std::string hostile :
         {"", "{", "[]", "{\"schema\":\"hpcai500-pack/1\"}",
          "{\"schema\":\"hpcai500-pack/1\",\"fingerprint\":\"../../x\",\"bytes\":-1,\"sha256\":[]}",
          "{\"schema\":\"hpcai500-pack/1\",\"fingerprint\":7,\"bytes\":1e99,\"sha256\":{}}"}) {
        test::write_file_bytes(index, {hostile.begin(), hostile.end()});
        const Staged again = run();
        expect_all(again);
        EXPECT_GT(again.record.copied_bytes, 0) << hostile;
        EXPECT_GT(again.record.reused_bytes, 0) << hostile;
    }
    fs::remove(index);
    expect_all(run());
    test::write_file_bytes(training() / "pack-123456", {1});  // of a larger set, without index
    run();
    EXPECT_FALSE(fs::exists(training() / "pack-123456"));
}

TEST_F(DamagedStage, TouchesNoWholeFileThatItDidNotWrite) {
    const auto stage_whole = [&] {
        test::LoneDuplicator lone(config_);
        DataDuplicator& duplicator = lone.duplicator;
        duplicator.add_files(Split::training, {shared_.root() / "a", 3, [](std::uint32_t file) {
                                                   return std::to_string(file);
                                               }});
        duplicator.run();
    };
    stage_whole();
    test::write_file_bytes(training() / "1.index", {'{'});
    stage_whole();  // damaged, but its index shows that this program wrote it
    EXPECT_EQ(test::read_file_bytes(training() / "1"), shared_.bytes(1));
    fs::remove(training() / "1.index");
    const auto [code, text] = refused(stage_whole);
    EXPECT_EQ(code, ExitCode::usage);
    EXPECT_THAT(text, AllOf(HasSubstr("training/1'"), HasSubstr("remove it")));
    EXPECT_EQ(test::read_file_bytes(training() / "1"), shared_.bytes(1));
}

TEST_F(DamagedStage, ReportsWhatToDoWithADamagedMarker) {
    run();
    test::write_file_bytes(stage() / "stage.json", {'{'});
    EXPECT_THAT(refused([&] { run(); }).second,
                AllOf(HasSubstr("stage.json"), HasSubstr("remove the folder")));
}

TEST_F(DamagedStage, RemovesNothingThatItDidNotWrite) {
    config_.data.staging_cleanup = config::StagingCleanup::remove;
    const test::Bytes precious{1, 2, 3};
    {
        const Staged staged = run();
        test::write_file_bytes(training() / "precious", precious);
        test::write_file_bytes(stage() / "notes", precious);
        fs::create_symlink(shared_.path(0), training() / "link.index");
        staged.staging_lock->release(true);
    }
    EXPECT_EQ(files_below(stage()),
              (std::vector<std::string>{"notes", "stage.json", "training/link.index",
                                        "training/precious"}));
    EXPECT_EQ(test::read_file_bytes(shared_.path(0)), shared_.bytes(0));
}

TEST_F(DamagedStage, FollowsNoLinkOutOfItsFolder) {
    run();
    const fs::path victim = folder_.path() / "victim";
    fs::rename(training(), victim);  // packs that look like packs of this program
    fs::create_directory_symlink(victim, training());
    EXPECT_EQ(refused([&] { run(); }).first, ExitCode::usage);
    EXPECT_EQ(files_below(victim).size(), 12U);
    fs::remove_all(stage());
    fs::create_directory_symlink(victim, stage());
    EXPECT_EQ(refused([&] { run(); }).first, ExitCode::usage);
    EXPECT_EQ(files_below(victim).size(), 12U);
}

TEST_F(DamagedStage, RejectsFoldersThatAreNotItsOwn) {
    test::write_file_bytes(stage() / "somebody's", {1});
    EXPECT_THAT(refused([&] { run(); }).second,
                HasSubstr("is not a staging folder of this program"));
    fs::remove_all(stage());
    run();
    fs::permissions(stage(), fs::perms::all);
    EXPECT_THAT(refused([&] { run(); }).second, HasSubstr("can be written by other users"));
    fs::permissions(stage(), fs::perms::owner_all);
    fs::permissions(local(), fs::perms::all);
    EXPECT_THAT(refused([&] { run(); }).second, HasSubstr("sticky"));
    config_.data.staging_directory = (folder_.path() / "absent").string();
    EXPECT_THAT(refused([&] { run(); }).second, HasSubstr("No such file"));
}

TEST_F(DamagedStage, DoesNotStageWhatLiesInTheStage) {
    run();
    test::SharedFiles inside(training());
    const std::vector<std::string> before = files_below(training());
    const StagingRequest request{training(), 1, [](std::uint32_t) { return "pack-000000"; }};
    const auto [code, text] = refused([&] { stage_at_one_rank(config_, request); });
    EXPECT_EQ(code, ExitCode::usage);
    EXPECT_THAT(text, HasSubstr("are inside the staging folder"));
    EXPECT_EQ(files_below(training()), before);
}

TEST_F(DamagedStage, DoesNotStageAmongTheSamples) {
    const test::TemporaryFolder samples;
    test::write_file_bytes(samples.path() / "a" / "1.jpg", {1, 2, 3});
    const std::vector<std::string> before = files_below(samples.path());
    const StagingRequest request{samples.path(), 1, [](std::uint32_t) { return "a/1.jpg"; }};
    for (const char* below : {"", "a"}) {
        config_.data.staging_directory = (samples.path() / below).string();
        const auto [code, text] = refused([&] { stage_at_one_rank(config_, request); });
        EXPECT_EQ(code, ExitCode::usage);
        EXPECT_THAT(text, HasSubstr("inside the samples' folder"));
        EXPECT_EQ(files_below(samples.path()), before) << "nothing is left there";
    }
}

}  // namespace
}  // namespace hpcai::data
