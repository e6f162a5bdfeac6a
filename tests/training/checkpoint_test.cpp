// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <hpcai/base/clock.hpp>
#include <hpcai/storage/file.hpp>
#include <hpcai/storage/sha256.hpp>
#include <hpcai/training/checkpoint.hpp>

#include "storage/temporary_folder.hpp"
#include "support/failing_disk.hpp"

namespace hpcai::training {
namespace {

namespace fs = std::filesystem;
using storage::error_of;
using testing::HasSubstr;

constexpr std::size_t kValues = 5000;
constexpr const char* kConfigDigest = "1f2e";

/// Every value encodes the step.
Checkpoint checkpoint_of(std::int64_t step) {
    Checkpoint checkpoint;
    checkpoint.step = step;
    checkpoint.launch_id = 7;
    checkpoint.snapshot.put("parameters",
                            std::vector<float>(kValues, static_cast<float>(step) + 0.5f));
    checkpoint.snapshot.put_numbers("progress", {static_cast<double>(step), 0.25});
    checkpoint.snapshot.put_text("words", "of one");
    return checkpoint;
}

bool is_whole(const Checkpoint& checkpoint) {
    const auto step = static_cast<double>(checkpoint.step);
    const auto parameters = checkpoint.snapshot.floats("parameters", kValues);
    return checkpoint.snapshot.numbers("progress", 2)[0] == step &&
           std::ranges::all_of(parameters, [&](float value) { return value == step + 0.5; });
}

class CheckpointFiles : public testing::Test {
protected:
    CheckpointLocation place(int group_rank = 0, int ranks = 1) const {
        return {folder_ / "checkpoints/0", kConfigDigest, group_rank, ranks};
    }
    fs::path file(std::int64_t step, const char* suffix = ".safetensors") const {
        return checkpoint_folder(place(), step) / (std::string("rank-0") + suffix);
    }
    /// Returns the newest checkpoint that can be read, and the messages of newer ones.
    std::optional<Checkpoint> newest(std::vector<std::string>* rejected = nullptr) const {
        for (const std::int64_t step : list_checkpoints(place().folder)) {
            try {
                return read_checkpoint(place(), step);
            } catch (const Error& error) {
                EXPECT_EQ(error.code(), ExitCode::data) << error.what();
                if (rejected != nullptr) rejected->push_back(error.what());
            }
        }
        return std::nullopt;
    }
    void overwrite(const fs::path& path, std::span<const std::byte> bytes) const {
        fs::remove(path);  // ext4 syncs a file that is truncated and rewritten, which is slow
        std::ofstream(path, std::ios::binary)
            .write(reinterpret_cast<const char*>(bytes.data()),
                   static_cast<std::streamsize>(bytes.size()));
    }
    /// Writes a marker that matches the damaged file.
    void sign_again(std::int64_t step) const {
        const std::string digest = storage::sha256_hex_of_file(file(step));
        std::ofstream(file(step, ".done"))
            << R"({"schema": "hpcai500-checkpoint/1", "step": )" << step
            << R"(, "group_rank": 0, "ranks": 1, "config_sha256": "1f2e", "program": 7, "bytes": )"
            << fs::file_size(file(step)) << R"(, "sha256": ")" << digest << "\"}";
    }

    storage::TemporaryFolder folder_;
};

TEST_F(CheckpointFiles, AreReadAsTheyWereWritten) {
    write_checkpoint(place(), checkpoint_of(12));
    EXPECT_TRUE(fs::exists(folder_ / "checkpoints/0/step-000000000012/rank-0.safetensors"));
    const Checkpoint read = read_checkpoint(place(), 12);
    EXPECT_EQ(read.step, 12);
    EXPECT_EQ(read.launch_id, 7);
    EXPECT_TRUE(is_whole(read));
    EXPECT_EQ(read.snapshot.text("words"), "of one");
}

TEST_F(CheckpointFiles, AreListedFromTheNewestOnAndRemovedExceptForTwo) {
    for (const std::int64_t step : {9, 100, 20, 30}) {
        write_checkpoint(place(), checkpoint_of(step));
    }
    fs::create_directories(place().folder / "step-12");  // not a checkpoint's name
    EXPECT_EQ(list_checkpoints(place().folder), (std::vector<std::int64_t>{100, 30, 20, 9}));
    remove_checkpoints_except(place().folder, {20, 30});
    EXPECT_EQ(list_checkpoints(place().folder), (std::vector<std::int64_t>{30, 20}))
        << "also without a newer one, which an earlier launch may have left incomplete";
    EXPECT_TRUE(list_checkpoints(folder_ / "nowhere").empty());
    EXPECT_TRUE(has_marker(place(), 20));
    EXPECT_FALSE(has_marker(place(1, 2), 20)) << "of another rank";
    EXPECT_FALSE(has_marker(place(), 9));
}

TEST_F(CheckpointFiles, OfAFolderThatCannotBeReadAreNotReportedMissing) {
    std::ofstream(folder_ / "folder") << "is a file";
    EXPECT_THAT(error_of(ExitCode::data, [&] { list_checkpoints(folder_ / "folder"); }),
                testing::HasSubstr("folder': Not a directory"));
}

TEST_F(CheckpointFiles, OfOthersAreRejectedByName) {
    write_checkpoint(place(), checkpoint_of(3));
    CheckpointLocation other = place();
    other.config_sha256 = "abcd";
    EXPECT_THAT(error_of(ExitCode::data, [&] { read_checkpoint(other, 3); }),
                HasSubstr("rank-0.done': config_sha256 is 1f2e; must be abcd"));
    other = place(0, 2);
    EXPECT_THAT(error_of(ExitCode::data, [&] { read_checkpoint(other, 3); }),
                HasSubstr("ranks is 1; must be 2"));
    EXPECT_THAT(error_of(ExitCode::data, [&] { read_checkpoint(place(1, 2), 3); }),
                HasSubstr("rank-1.done"));
    EXPECT_THAT(error_of(ExitCode::data, [&] { read_checkpoint(place(), 4); }),
                HasSubstr("step-000000000004"));
}

TEST_F(CheckpointFiles, NameTheArrayThatDoesNotFit) {
    write_checkpoint(place(), checkpoint_of(3));
    const Snapshot read = read_checkpoint(place(), 3).snapshot;
    EXPECT_THAT(error_of(ExitCode::data, [&] { read.floats("parameters", 7); }),
                HasSubstr("rank-0.safetensors': parameters: expected 7 values, got 5000"));
    EXPECT_THAT(error_of(ExitCode::data, [&] { read.floats("optimizer_state.0", 7); }),
                HasSubstr("optimizer_state.0: is missing"));
    EXPECT_THAT(error_of(ExitCode::data, [&] { read.table("progress", 3); }),
                HasSubstr("progress: expected rows of 3 values, got 2 values"));
    EXPECT_THAT(error_of(ExitCode::data, [&] { read.integer("progress", 0.25, 0, 9); }),
                HasSubstr("progress: expected a whole number from 0 to 9, got 0.25"));
}

TEST_F(CheckpointFiles, WithADamagedOneAreRejectedAndThePreviousOneIsUsed) {
    write_checkpoint(place(), checkpoint_of(1));
    write_checkpoint(place(), checkpoint_of(2));
    const auto sound = storage::read_file_bytes(file(2), 1 << 20);
    const auto marker = storage::read_file_bytes(file(2, ".done"), 1 << 20);
    storage::Dice dice(5);
    for (int damage = 0; damage < 1000; ++damage) {
        const bool in_marker = damage % 4 == 3;
        const auto& whole = in_marker ? marker : sound;
        const auto damaged = storage::mutated(whole, dice);
        if (damaged == whole) continue;
        overwrite(file(2, in_marker ? ".done" : ".safetensors"), damaged);
        std::vector<std::string> rejected;
        const auto found = newest(&rejected);
        overwrite(file(2), sound);
        overwrite(file(2, ".done"), marker);
        ASSERT_TRUE(found && is_whole(*found)) << damage;
        // A marker without a blank has the same meaning.
        if (in_marker && found->step == 2) continue;
        ASSERT_EQ(found->step, 1) << damage;
        ASSERT_THAT(rejected.at(0), HasSubstr("step-000000000002/rank-0"));
    }
}

TEST_F(CheckpointFiles, WhoseDamageIsSignedAreReadOrRejectedWithTheFile) {
    write_checkpoint(place(), checkpoint_of(2));
    const auto sound = storage::read_file_bytes(file(2), 1 << 20);
    storage::Dice dice(6);
    int rejected = 0;
    for (int damage = 0; damage < 300; ++damage) {
        // Most bytes are values; errors in earlier bytes matter to a reader.
        auto damaged = sound;
        const auto head = static_cast<std::ptrdiff_t>(damage % 2 == 0 ? 400 : sound.size());
        const auto part = storage::mutated({sound.begin(), sound.begin() + head}, dice);
        damaged.erase(damaged.begin(), damaged.begin() + head);
        damaged.insert(damaged.begin(), part.begin(), part.end());
        overwrite(file(2), damaged);
        sign_again(2);
        try {
            const Snapshot read = read_checkpoint(place(), 2).snapshot;
            read.floats("parameters", kValues);
        } catch (const Error& error) {
            ++rejected;
            ASSERT_EQ(error.code(), ExitCode::data) << error.what();
            ASSERT_THAT(error.what(), HasSubstr("rank-0.safetensors"));
        }
    }
    EXPECT_GT(rejected, 100);
}

TEST_F(CheckpointFiles, WithHostileHeadersAreRejected) {
    write_checkpoint(place(), checkpoint_of(2));
    const auto expect_rejected = [&](std::uint64_t length, const std::string& header,
                                     const std::string& expected) {
        std::vector<std::byte> bytes(sizeof length);
        std::memcpy(bytes.data(), &length, sizeof length);
        const auto text = storage::bytes_of(header);
        bytes.insert(bytes.end(), text.begin(), text.end());
        overwrite(file(2), bytes);
        sign_again(2);
        EXPECT_THAT(error_of(ExitCode::data, [&] { read_checkpoint(place(), 2); }),
                    testing::AllOf(HasSubstr("rank-0.safetensors"), HasSubstr(expected)))
            << header;
    };
    expect_rejected(std::uint64_t{1} << 63, "{}", "header");
    const std::string overflow =
        R"({"parameters":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0]}})";
    expect_rejected(overflow.size(), overflow, "parameters");
    const std::string wrong_type =
        R"({"parameters":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}})";
    expect_rejected(wrong_type.size(), wrong_type,
                    "parameters: expected values of type F32 or F64");
}

/// Writes steps 2, 3, ... after step 1 as training does, in a separate process.
class CheckpointKills : public CheckpointFiles {
protected:
    void SetUp() override { write_checkpoint(place(), checkpoint_of(1)); }

    /// Prints each step after it was written, if there is a listener.
    [[noreturn]] void write_steps(std::int64_t last, int listener = -1) const {
        try {
            for (std::int64_t step = 2; step <= last; ++step) {
                write_checkpoint(place(), checkpoint_of(step));
                if (listener >= 0 && ::write(listener, &step, sizeof step) != sizeof step) _exit(5);
                remove_checkpoints_except(place().folder, {step - 1, step});
            }
        } catch (const std::exception& error) {
            const std::string message = error.what();
            _exit(message.find("No space left") != std::string::npos ? 3 : 4);
        }
        _exit(0);
    }
    /// Returns the status of waitpid(). The fault is at call number `fault`.
    int run_with(const char* fault, int call) const {
        const pid_t child = fork();
        if (child == 0) {
            setenv("HPCAI500_DISK_FOLDER", folder_.path().c_str(), 1);
            setenv("HPCAI500_DISK_FAULT", fault, 1);
            setenv("HPCAI500_DISK_CALL", std::to_string(call).c_str(), 1);
            write_steps(3);
        }
        int status = 0;
        EXPECT_EQ(waitpid(child, &status, 0), child);
        return status;
    }
    void start_again() const {
        fs::remove_all(place().folder);
        write_checkpoint(place(), checkpoint_of(1));
    }
};

TEST_F(CheckpointKills, BetweenAnyTwoCallsLeaveTheOldOrTheNewOne) {
    int call = 1;
    for (;; ++call) {
        const int status = run_with("kill", call);
        const auto found = newest();
        ASSERT_TRUE(found && is_whole(*found)) << call;
        if (WIFEXITED(status)) break;
        start_again();
    }
    EXPECT_EQ(newest()->step, 3);
    EXPECT_GT(call, 20);
}

TEST_F(CheckpointKills, AndFullDisksLeaveTheOldOrTheNewOne) {
    for (int call = 1;; ++call) {
        const int status = run_with("full", call);
        const auto found = newest();
        ASSERT_TRUE(found && is_whole(*found)) << call;
        ASSERT_TRUE(WIFEXITED(status));
        if (WEXITSTATUS(status) == 0) break;
        ASSERT_EQ(WEXITSTATUS(status), 3) << call;
        start_again();
    }
}

/// The number of kills is HPCAI500_KILLS, 200 in scripts/checkpoint_kills.sh.
TEST_F(CheckpointKills, AtRandomMomentsLeaveTheOldOrTheNewOne) {
    const char* wanted = std::getenv("HPCAI500_KILLS");
    const int kills = wanted == nullptr ? 20 : std::atoi(wanted);
    storage::Dice dice(static_cast<std::uint64_t>(kills));
    int loaded_new = 0, loaded_old = 0;
    for (int kill_number = 0; kill_number < kills; ++kill_number) {
        const Stopwatch writing;
        start_again();
        const double moment = 6e-6 * static_cast<double>(dice.below(1000000)) * writing.seconds();
        std::array<int, 2> pipe{};
        ASSERT_EQ(::pipe(pipe.data()), 0);
        const Stopwatch watch;
        const pid_t child = fork();
        if (child == 0) write_steps(100000, pipe[1]);
        ::close(pipe[1]);
        while (watch.seconds() < moment) continue;
        ::kill(child, SIGKILL);
        int status = 0;
        ASSERT_EQ(waitpid(child, &status, 0), child);
        ASSERT_TRUE(WIFSIGNALED(status));
        std::int64_t finished = 1;
        while (::read(pipe[0], &finished, sizeof finished) == sizeof finished) continue;
        ::close(pipe[0]);
        const auto found = newest();
        ASSERT_TRUE(found && is_whole(*found)) << kill_number;
        ASSERT_TRUE(found->step == finished || found->step == finished + 1)
            << found->step << " " << finished;
        ++(found->step == finished ? loaded_old : loaded_new);
    }
    std::cout << kills << " kills: " << loaded_old << " loads of the last with a marker, "
              << loaded_new << " of the next one, none of anything else\n";
}

TEST(BackgroundWork, ReportsWhatItThrewOnce) {
    BackgroundWork work;
    EXPECT_EQ(work.wait(), "");
    work.start([] { throw Error(ExitCode::usage, "the disk is full"); });
    EXPECT_EQ(work.wait(), "the disk is full");
    EXPECT_EQ(work.wait(), "");
    int done = 0;
    work.start([&] { ++done; });
    work.start([&] { done += 10; });
    EXPECT_EQ(work.wait(), "");
    EXPECT_EQ(done, 11);
}

}  // namespace
}  // namespace hpcai::training
