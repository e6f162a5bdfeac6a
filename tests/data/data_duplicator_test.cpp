// SPDX-License-Identifier: Apache-2.0
#include <csignal>

#include <gmock/gmock.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <hpcai/data/jpeg.hpp>
#include <hpcai/plan/data_sampler.hpp>
#include <hpcai/storage/manifest.hpp>

#include "staging.hpp"

/// Copies of samples on a node's own disk: what is copied, reused, refused and removed.
namespace hpcai::data {
namespace {

namespace fs = std::filesystem;
using test::files_below;
using test::refused;
using test::stage_at_one_rank;
using test::Staged;
using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;

constexpr std::size_t kKib = 1024;

/// Twelve files of 0.3 to 0.5 MiB, one to three in a pack of 1 MiB at most.
class Duplicator : public testing::Test {
protected:
    Duplicator() : shared_(folder_.path() / "shared"), config_(test::staging_config(local())) {
        fs::create_directories(local());
        for (int file = 0; file < 12; ++file) shared_.add((300 + 17 * file) * kKib + 1);
    }

    fs::path local() const { return folder_.path() / "local"; }
    fs::path stage() const { return local() / ("hpcai500-stage-" + std::to_string(geteuid())); }
    fs::path training() const { return stage() / "training"; }
    Staged run() const { return stage_at_one_rank(config_, shared_.request()); }
    std::int64_t all_bytes() const {
        std::int64_t bytes = 0;
        for (std::uint32_t file = 0; file < shared_.files(); ++file) {
            bytes += static_cast<std::int64_t>(shared_.bytes(file).size());
        }
        return bytes;
    }
    void expect_all(const Staged& staged) const {
        for (std::uint32_t file = 0; file < shared_.files(); ++file) {
            EXPECT_EQ(staged.pictures->read(file), shared_.bytes(file)) << file;
        }
    }
    void flip_byte(const fs::path& path, std::size_t offset) const {
        test::Bytes bytes = test::read_file_bytes(path);
        bytes.at(offset) ^= 1;
        test::write_file_bytes(path, bytes);
    }
    std::int64_t bytes_of_packs() const {
        std::int64_t bytes = 0;
        for (const std::string& name : files_below(training())) {
            if (name.ends_with(".index")) continue;
            bytes += static_cast<std::int64_t>(fs::file_size(training() / name));
        }
        return bytes;
    }

    test::TemporaryFolder folder_;
    test::SharedFiles shared_;
    config::Config config_;
};

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

TEST_F(Duplicator, UsesWhatAnEarlierRunLeft) {
    run();
    const Staged again = run();
    expect_all(again);
    EXPECT_EQ(again.record.copied_bytes, 0);
    EXPECT_EQ(again.record.reused_bytes, all_bytes());
}

/// Runs `work` in a process of its own; how that ended, as of waitpid.
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
    shared_.add(3000 * kKib);  // in a pack of its own, which the limit kills the process in
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

TEST_F(Duplicator, SaysWhichFileADiskDidNotTakeAndKeepsTheRest) {
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
    const std::unique_ptr<comm::Communicator> alone = comm::make_self_communicator();
    const plan::ParallelismController controller({1, 1, 1}, {0});
    DataDuplicator duplicator(config_, controller, *alone, 2);
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

TEST_F(Duplicator, CopiesAgainWhatIsDamagedInTheStage) {
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

TEST_F(Duplicator, NoticesDamageAfterItsCheck) {
    const Staged staged = run();
    flip_byte(training() / "pack-000000", 10);
    try {
        staged.pictures->read(0);
        FAIL() << "no error";
    } catch (const DecodeError& error) {
        EXPECT_THAT(error.what(), AllOf(HasSubstr("pack-000000"), HasSubstr("damaged")));
    }
    EXPECT_EQ(staged.pictures->read(1), shared_.bytes(1));
    fs::remove(training() / "pack-000001");
    EXPECT_THROW(staged.pictures->read(3), DecodeError);
}

TEST_F(Duplicator, BelievesNoIndex) {
    run();
    const fs::path index = training() / "pack-000001.index";
    const test::Bytes sound = test::read_file_bytes(index);
    std::string text(sound.begin(), sound.end());
    const std::size_t digits = text.find("sha256\":[\"") + 10;
    text[digits] = text[digits] == '0' ? '1' : '0';
    test::write_file_bytes(index, {text.begin(), text.end()});
    expect_all(run());  // another digest
    for (const std::string hostile :
         {"", "{", "[]", "{\"schema\":\"hpcai500-pack/1\"}",
          "{\"schema\":\"hpcai500-pack/1\",\"fingerprint\":\"../../x\",\"bytes\":-1,\"sha256\":[]}",
          "{\"schema\":\"hpcai500-pack/1\",\"fingerprint\":7,\"bytes\":1e99,\"sha256\":{}}"}) {
        test::write_file_bytes(index, {hostile.begin(), hostile.end()});
        const auto [code, said] = refused([&] { run(); });
        EXPECT_EQ(code, ExitCode::usage) << hostile;
        EXPECT_THAT(said, HasSubstr("was not written by this program")) << hostile;
        EXPECT_TRUE(fs::exists(training() / "pack-000001"));
    }
}

TEST_F(Duplicator, IsAloneWithItsStage) {
    const Staged first = run();
    const auto [code, text] = refused([&] { run(); });
    EXPECT_EQ(code, ExitCode::usage);
    EXPECT_THAT(text, HasSubstr("in use"));
    first.stage->leave(true);
    expect_all(run());
}

struct Policy {
    config::StagingCleanup cleanup;
    bool after_success, after_failure;  // whether the stage is there
};

TEST_F(Duplicator, CleansUpAsItIsTold) {
    using enum config::StagingCleanup;
    for (const Policy& policy :
         {Policy{keep, true, true}, Policy{remove, false, false},
          Policy{remove_on_success, false, true}, Policy{remove_on_failure, true, false}}) {
        config_.data.staging_cleanup = policy.cleanup;
        for (const bool completed : {true, false}) {
            run().stage->leave(completed);
            EXPECT_EQ(fs::exists(stage()), completed ? policy.after_success : policy.after_failure)
                << static_cast<int>(policy.cleanup) << completed;
            EXPECT_TRUE(fs::exists(local()));
        }
    }
}

TEST_F(Duplicator, RemovesNothingThatItDidNotWrite) {
    config_.data.staging_cleanup = config::StagingCleanup::remove;
    const test::Bytes precious{1, 2, 3};
    {
        const Staged staged = run();
        test::write_file_bytes(training() / "precious", precious);
        test::write_file_bytes(stage() / "notes", precious);
        fs::create_symlink(shared_.path(0), training() / "link.index");
        staged.stage->leave(true);
    }
    EXPECT_EQ(files_below(stage()),
              (std::vector<std::string>{"notes", "stage.json", "training/link.index",
                                        "training/precious"}));
    EXPECT_EQ(test::read_file_bytes(shared_.path(0)), shared_.bytes(0));
}

TEST_F(Duplicator, FollowsNoLinkOutOfItsFolder) {
    run();
    const fs::path victim = folder_.path() / "victim";
    fs::rename(training(), victim);  // packs that it would take for its own
    fs::create_directory_symlink(victim, training());
    EXPECT_EQ(refused([&] { run(); }).first, ExitCode::usage);
    EXPECT_EQ(files_below(victim).size(), 12U);
    fs::remove_all(stage());
    fs::create_directory_symlink(victim, stage());
    EXPECT_EQ(refused([&] { run(); }).first, ExitCode::usage);
    EXPECT_EQ(files_below(victim).size(), 12U);
}

TEST_F(Duplicator, RefusesFoldersThatAreNotItsOwn) {
    test::write_file_bytes(stage() / "somebody's", {1});
    EXPECT_THAT(refused([&] { run(); }).second, HasSubstr("is not a stage of this program"));
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

}  // namespace
}  // namespace hpcai::data
