// SPDX-License-Identifier: Apache-2.0
#include <csignal>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <hpcai/plan/data_sampler.hpp>
#include <hpcai/storage/manifest.hpp>

#include "staging.hpp"

/// Copies of samples on the disk of a node: which ones are made, reused, rejected and removed.
namespace hpcai::data {
namespace {

namespace fs = std::filesystem;
using test::kKib;
using test::refused;
using test::stage_at_one_rank;
using test::Staged;
using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;
using tests::files_below;

class Duplicator : public test::TwelveFiles {};

TEST_F(Duplicator, CopiesEveryByteOnceIntoAFewLargeFiles) {
    const Staged staged = run();
    expect_all(staged);
    EXPECT_EQ(staged.record.files, 12);
    EXPECT_EQ(staged.record.copied_bytes, all_bytes());
    EXPECT_EQ(staged.record.reused_bytes, 0);
    EXPECT_EQ(staged.record.fullest_node_bytes, all_bytes());
    EXPECT_EQ(bytes_of_packs(), all_bytes());
    EXPECT_EQ(files_below(training()).size(), 12U);  // six packs and their indices
}

TEST_F(Duplicator, CopiesOnlyWhatTheBootstrapHas) {
    config_.bagging.sampler = config::Sampler::poisson;
    const Staged staged = run();
    const plan::DataSampler sampler(config_.bagging, config_.run.seed, shared_.files());
    const std::vector<std::uint16_t> counts = sampler.counts(0);
    std::int64_t needed = 0;
    for (std::uint32_t file = 0; file < shared_.files(); ++file) {
        if (counts[file] == 0) {
            EXPECT_EQ(staged.pictures->read(file), std::nullopt);
            continue;
        }
        EXPECT_EQ(staged.pictures->read(file), shared_.bytes(file));
        needed += static_cast<std::int64_t>(shared_.bytes(file).size());
    }
    EXPECT_LT(needed, all_bytes());
    EXPECT_EQ(staged.record.copied_bytes, needed);
    EXPECT_EQ(bytes_of_packs(), needed);
}

TEST_F(Duplicator, LeavesWhatIsNoFileWhereItIs) {
    fs::remove(shared_.path(3));
    fs::remove(shared_.path(5));
    ASSERT_EQ(mkfifo(shared_.path(5).c_str(), 0600), 0);
    const Staged staged = run();
    EXPECT_EQ(staged.pictures->read(3), std::nullopt);
    EXPECT_EQ(staged.pictures->read(5), std::nullopt);
    EXPECT_EQ(staged.pictures->read(4), shared_.bytes(4));
    EXPECT_EQ(staged.record.left_files, 2);
    EXPECT_EQ(staged.record.files, 10);
}

/// A file that disappears before it is copied cannot be read.
TEST_F(Duplicator, LeavesWhatItCannotReadAndTriesItAgain) {
    {
        test::LoneDuplicator lone(config_);
        DataDuplicator& duplicator = lone.duplicator;
        duplicator.add_pictures(Split::training, shared_.request());
        for (const std::uint32_t file : {1U, 11U}) {  // a file before others, and the last one
            fs::rename(shared_.path(file), shared_.root() / ("hidden" + std::to_string(file)));
        }
        duplicator.run();
        const auto pictures = duplicator.pictures(Split::training);
        for (std::uint32_t file = 0; file < shared_.files(); ++file) {
            if (file == 1 || file == 11) {
                EXPECT_EQ(pictures->read(file), std::nullopt);
                EXPECT_EQ(pictures->read(file), std::nullopt);
            } else {
                EXPECT_EQ(pictures->read(file), shared_.bytes(file)) << file;
            }
        }
        EXPECT_EQ(duplicator.result().record.left_files, 2);
        EXPECT_EQ(duplicator.result().record.files, 10);
        EXPECT_EQ(duplicator.result().lock->lost_copies(), 0);
    }
    for (const std::uint32_t file : {1U, 11U}) {
        fs::rename(shared_.root() / ("hidden" + std::to_string(file)), shared_.path(file));
    }
    const Staged again = run();
    expect_all(again);
    EXPECT_EQ(again.record.left_files, 0);
    EXPECT_GT(again.record.reused_bytes, 0);
}

TEST_F(Duplicator, TakesATimeBeyond2262ForATime) {
    const timespec times[2] = {{10'413'792'000, 0}, {10'413'792'000, 7}};
    ASSERT_EQ(utimensat(AT_FDCWD, shared_.path(2).c_str(), times, 0), 0);
    run();
    const Staged again = run();
    expect_all(again);
    EXPECT_EQ(again.record.copied_bytes, 0);
}

TEST_F(Duplicator, UsesWhatAnEarlierRunLeft) {
    run();
    const Staged again = run();
    expect_all(again);
    EXPECT_EQ(again.record.copied_bytes, 0);
    EXPECT_EQ(again.record.reused_bytes, all_bytes());
}

/// Runs `work` in a separate process. Returns its status as waitpid() does.
template <typename Work>
int in_own_process(const Work& work) {
    const pid_t child = fork();
    if (child == 0) {
        try {
            work();
        } catch (const Error& error) {
            _exit(static_cast<int>(error.code()));
        }
        _exit(0);
    }
    int status = 0;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    return status;
}

void limit_file_size(rlim_t bytes) {
    const rlimit limit{bytes, bytes};
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0) _exit(99);
}

TEST_F(Duplicator, ResumesWhatAKilledRunLeftAndChecksIt) {
    shared_.add(3000 *
                kKib);  // in a separate pack; the limit kills the process while it writes that pack
    const int status = in_own_process([&] {
        limit_file_size(1500 * kKib);
        run();
    });
    ASSERT_TRUE(WIFSIGNALED(status)) << status;
    ASSERT_EQ(WTERMSIG(status), SIGXFSZ);
    const std::vector<std::string> left = files_below(training());
    EXPECT_THAT(left, Contains(testing::StartsWith(".pack-000006.")));  // half-written
    EXPECT_THAT(left, Not(Contains("pack-000006")));
    std::int64_t whole = 0;
    for (int pack = 0; pack < 6; ++pack) {
        const fs::path path = training() / fmt::format("pack-{:06}", pack);
        if (fs::exists(path)) whole += static_cast<std::int64_t>(fs::file_size(path));
    }
    EXPECT_GT(whole, 0);

    const Staged again = run();
    expect_all(again);
    EXPECT_EQ(again.record.reused_bytes, whole);
    EXPECT_EQ(again.record.copied_bytes, all_bytes() - whole);
    EXPECT_EQ(files_below(training()).size(), 14U);
}

TEST_F(Duplicator, ReportsWhichFileCouldNotBeWrittenAndKeepsTheRest) {
    shared_.add(3000 * kKib);
    const int status = in_own_process([&] {
        std::signal(SIGXFSZ, SIG_IGN);
        limit_file_size(1500 * kKib);
        const auto [code, text] = refused([&] { run(); });
        const bool is_clear = text.find("pack-000006") != std::string::npos &&
                              text.find("data.staging_directory") != std::string::npos &&
                              text.find("File too large") != std::string::npos;
        _exit(is_clear ? static_cast<int>(code) : 98);
    });
    EXPECT_EQ(WEXITSTATUS(status), static_cast<int>(ExitCode::usage)) << status;
    for (const std::string& name : files_below(training())) {
        EXPECT_FALSE(name.ends_with(".tmp")) << name;
    }
    const Staged again = run();
    expect_all(again);
    EXPECT_GT(again.record.reused_bytes, 0);
}

TEST_F(Duplicator, StatesTheNeedBeforeTheFirstByte) {
    config_.data.staging_reserve_mib = 2'000'000'000;
    const auto [code, text] = refused([&] { run(); });
    EXPECT_EQ(code, ExitCode::usage);
    EXPECT_THAT(text, AllOf(HasSubstr("data.staging_directory"), HasSubstr(local().string()),
                            HasSubstr("4.61 MiB of samples"), HasSubstr("staging_reserve_mib")));
    EXPECT_TRUE(files_below(training()).empty());
}

TEST_F(Duplicator, NoticesASourceThatChangesWhileItIsCopied) {
    test::LoneDuplicator lone(config_);
    DataDuplicator& duplicator = lone.duplicator;
    duplicator.add_pictures(Split::training, shared_.request());
    test::Bytes longer = shared_.bytes(7);
    longer.push_back(0);
    test::write_file_bytes(shared_.path(7), longer);
    const auto [code, text] = refused([&] { duplicator.run(); });
    EXPECT_EQ(code, ExitCode::data);
    EXPECT_THAT(text, AllOf(HasSubstr(shared_.path(7).string()), HasSubstr("changed")));
    EXPECT_THAT(files_below(training()), Not(Contains("pack-000003")));
}

TEST_F(Duplicator, ComparesTheSourceWithItsManifest) {
    storage::write_manifest(shared_.root());
    expect_all(run());
    flip_byte(shared_.path(7), 1000);
    const auto [code, text] = refused([&] { run(); });
    EXPECT_EQ(code, ExitCode::data);
    EXPECT_THAT(text, AllOf(HasSubstr(shared_.path(7).string()), HasSubstr("damaged"),
                            HasSubstr("manifest.sha256")));
    EXPECT_THAT(files_below(training()), Not(Contains("pack-000003")));
}

TEST_F(Duplicator, CountsWhatItsManifestDoesNotList) {
    storage::write_manifest(shared_.root());
    shared_.add(1000);
    test::LoneDuplicator lone(config_);
    DataDuplicator& duplicator = lone.duplicator;
    duplicator.add_pictures(Split::training, shared_.request());
    duplicator.run();
    EXPECT_THAT(
        duplicator.result().notes,
        testing::ElementsAre(testing::AllOf(testing::StartsWith("staged files that are not listed"),
                                            testing::EndsWith(": 1"))));
}

TEST_F(Duplicator, RejectsAManifestThatItCannotRead) {
    fs::create_directories(shared_.root() / storage::kManifestName);
    const auto [code, text] = refused([&] { run(); });
    EXPECT_EQ(code, ExitCode::data);
    EXPECT_THAT(text, HasSubstr(storage::kManifestName));
}

/// Uses sparse files of 8 EiB.
TEST_F(Duplicator, IsNotFooledBySparseFilesWhoseSizesOverflow) {
    const fs::path root = "/dev/shm/hpcai500-sparse-" + std::to_string(getpid());
    fs::create_directories(root);
    bool is_possible = true;
    for (const char* name : {"a.h5", "b.h5"}) {
        test::write_file_bytes(root / name, {});
        is_possible = is_possible && truncate((root / name).c_str(), INT64_MAX) == 0;
    }
    const auto [code, text] = refused([&] {
        test::LoneDuplicator lone(config_);
        DataDuplicator& duplicator = lone.duplicator;
        const auto name = [](std::uint32_t file) { return file == 0 ? "a.h5" : "b.h5"; };
        duplicator.add_files(Split::training, {root, is_possible ? 2U : 0U, name});
        duplicator.run();
    });
    fs::remove_all(root);
    if (!is_possible) GTEST_SKIP() << "no file system for such files";
    EXPECT_EQ(code, ExitCode::usage);
    EXPECT_THAT(text, HasSubstr("staging needs 4.00 EiB"));
}

TEST_F(Duplicator, RejectsAFileThatIsListedTwice) {
    const StagingRequest twice{shared_.root() / "a", 2, [](std::uint32_t) { return "3"; }};
    test::LoneDuplicator lone(config_);
    DataDuplicator& duplicator = lone.duplicator;
    const auto [code, text] = refused([&] { duplicator.add_files(Split::training, twice); });
    EXPECT_EQ(code, ExitCode::data);
    EXPECT_THAT(text, HasSubstr("listed twice"));
}

TEST_F(Duplicator, ReplacesTheStageOfAnotherDataSet) {
    run();
    test::SharedFiles other(folder_.path() / "other");
    for (int file = 0; file < 4; ++file) other.add(700 * kKib);
    const Staged staged = stage_at_one_rank(config_, other.request());
    for (std::uint32_t file = 0; file < 4; ++file) {
        EXPECT_EQ(staged.pictures->read(file), other.bytes(file));
    }
    EXPECT_EQ(staged.record.reused_bytes, 0);
    EXPECT_EQ(files_below(training()).size(), 8U);
}

TEST_F(Duplicator, IsAloneWithItsStage) {
    const Staged first = run();
    const auto [code, text] = refused([&] { run(); });
    EXPECT_EQ(code, ExitCode::usage);
    EXPECT_THAT(text, HasSubstr("in use"));
    first.staging_lock->release(true);
    expect_all(run());
}

struct Policy {
    config::StagingCleanup cleanup;
    bool after_success, after_failure;  // whether the staging folder exists
};

TEST_F(Duplicator, CleansUpAsConfigured) {
    using enum config::StagingCleanup;
    for (const Policy& policy :
         {Policy{keep, true, true}, Policy{remove, false, false},
          Policy{remove_on_success, false, true}, Policy{remove_on_failure, true, false}}) {
        config_.data.staging_cleanup = policy.cleanup;
        for (const bool completed : {true, false}) {
            run().staging_lock->release(completed);
            EXPECT_EQ(fs::exists(stage()), completed ? policy.after_success : policy.after_failure)
                << static_cast<int>(policy.cleanup) << completed;
            EXPECT_TRUE(fs::exists(local()));
        }
    }
}

}  // namespace
}  // namespace hpcai::data
