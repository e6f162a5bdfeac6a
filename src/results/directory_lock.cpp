// SPDX-License-Identifier: Apache-2.0
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <thread>

#include <fmt/core.h>

#include <hpcai/base/clock.hpp>
#include <hpcai/base/error.hpp>
#include <hpcai/base/text.hpp>
#include <hpcai/comm/agreement.hpp>
#include <hpcai/results/directory_lock.hpp>

namespace hpcai::results {
namespace {

namespace fs = std::filesystem;

using storage::FileLock;

constexpr const char* kLocked = "config.yaml";  // no program replaces it
constexpr std::chrono::milliseconds kBetweenTries{50};
constexpr double kLockTimeoutSeconds = 1;  // `hpcai500 status` tries the lock for a moment

/// A job that is requeued since a node died meets the locks of that node until the file server
/// gives it up: 90 s by NFS 4, some 100 s by Lustre.
constexpr double kLockTimeoutInJobsSeconds = 180;

void require_not_taken(const fs::path& output, const FileLock& lock) {
    require(lock.state() != FileLock::State::taken, ExitCode::usage,
            "{}: another program is at work in it, a run or `hpcai500 resume` or `score` of it; "
            "wait for its end, or end it",
            output.string());
}

FileLock try_lock(const fs::path& output, FileLock::Kind kind) {
    const double patience =
        std::getenv("SLURM_JOB_ID") != nullptr ? kLockTimeoutInJobsSeconds : kLockTimeoutSeconds;
    const Stopwatch watch;
    bool has_told = false;
    while (true) {
        FileLock lock(output / kLocked, kind);
        const double seconds = watch.seconds();
        if (lock.state() != FileLock::State::taken || seconds > patience) return lock;
        if (!has_told && seconds > kLockTimeoutSeconds) {
            has_told = true;
            std::cerr << fmt::format(
                "hpcai500: {}: another program is at work in it, or was on a node that died; waits "
                "up to "
                "{:.0f} s for its lock\n",
                printable(output.string()), patience);
        }
        std::this_thread::sleep_for(kBetweenTries);
    }
}

/// none, too, where it cannot be tried.
FileLock::State look_at_lock(const fs::path& output, FileLock::Kind kind) {
    constexpr int kTries = 3;  // another `hpcai500 status` has it for a moment
    for (int attempt = 0; attempt < kTries; ++attempt) {
        if (attempt > 0) std::this_thread::sleep_for(kBetweenTries);
        try {
            const FileLock lock(output / kLocked, kind);
            if (lock.state() != FileLock::State::taken) return lock.state();
        } catch (const Error&) {
            return FileLock::State::none;
        }
    }
    return FileLock::State::taken;
}

}  // namespace

std::shared_ptr<FileLock> lock_directory(const fs::path& output, FileLock::Kind kind) {
    auto lock = std::make_shared<FileLock>(try_lock(output, kind));
    require_not_taken(output, *lock);
    if (lock->state() == FileLock::State::none && kind == FileLock::Kind::exclusive) {
        std::cerr << fmt::format(
            "hpcai500: {}: its file system has no locks: see to it that no other program resumes "
            "it\n",
            printable(output.string()));
    }
    return lock;
}

std::optional<bool> is_at_work(const fs::path& output) {
    const FileLock::State state = look_at_lock(output, FileLock::Kind::exclusive);
    if (state == FileLock::State::none) return std::nullopt;
    return state == FileLock::State::taken;
}

bool is_being_taken_up(const fs::path& output) {
    return look_at_lock(output, FileLock::Kind::shared) == FileLock::State::taken;
}

std::shared_ptr<FileLock> share_directory(const context::RunContext& context,
                                          std::shared_ptr<FileLock> lock,
                                          comm::Communicator& everyone) {
    comm::collective_try(everyone, [&] {
        if (!lock) return;
        lock->share();
        require_not_taken(context.output, *lock);
    });
    comm::collective_try(everyone, [&] {
        if (context.place.group_rank != 0 || lock) return;
        lock = lock_directory(context.output, FileLock::Kind::shared);
    });
    return lock;
}

}  // namespace hpcai::results
