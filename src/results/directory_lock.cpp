// SPDX-License-Identifier: Apache-2.0
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <thread>

#include <fmt/core.h>

#include <hpcai/base/clock.hpp>
#include <hpcai/base/error.hpp>
#include <hpcai/base/text.hpp>
#include <hpcai/comm/collectives.hpp>
#include <hpcai/results/directory_lock.hpp>

namespace hpcai::results {
namespace {

namespace fs = std::filesystem;

using storage::FileLock;

constexpr const char* kLockedFile = "config.yaml";  // no program replaces it
constexpr std::chrono::milliseconds kRetryInterval{50};
constexpr double kLockTimeoutSeconds = 1;  // `hpcai500 status` holds the lock briefly

/// After a node has died, the file server keeps its locks: 90 s with NFS 4, about 100 s with
/// Lustre. A requeued job waits longer than both.
constexpr double kJobLockTimeoutSeconds = 180;

void require_not_taken(const fs::path& output, const FileLock& lock) {
    require(lock.state() != FileLock::State::taken, ExitCode::usage,
            "{}: another program uses it: `hpcai500 run`, `resume` or `score`; wait until "
            "it ends, or stop it",
            output.string());
}

/// Tries to lock the directory until `timeout` seconds have passed.
FileLock try_lock(const fs::path& output, FileLock::Kind kind, double timeout) {
    const Stopwatch watch;
    bool has_reported = false;
    while (true) {
        FileLock lock(output / kLockedFile, kind);
        const double seconds = watch.seconds();
        if (lock.state() != FileLock::State::taken || seconds > timeout) return lock;
        if (!has_reported && seconds > kLockTimeoutSeconds) {
            has_reported = true;
            std::cerr << fmt::format(
                "hpcai500: {}: another program uses it, or used it on a node that died; waiting up "
                "to {:.0f} s for its lock\n",
                printable(output.string()), timeout);
        }
        std::this_thread::sleep_for(kRetryInterval);
    }
}

/// Returns the state of the lock; State::unsupported if the file cannot be opened.
FileLock::State poll_lock(const fs::path& output, FileLock::Kind kind) {
    constexpr double kTimeoutSeconds = 0.1;  // another `hpcai500 status` holds it briefly
    try {
        return try_lock(output, kind, kTimeoutSeconds).state();
    } catch (const Error&) {
        return FileLock::State::unsupported;
    }
}

}  // namespace

std::shared_ptr<FileLock> lock_directory(const fs::path& output, FileLock::Kind kind) {
    const bool is_job = std::getenv("SLURM_JOB_ID") != nullptr ||
                        std::getenv("PBS_JOBID") != nullptr ||
                        std::getenv("FLUX_JOB_ID") != nullptr;
    const double timeout = is_job ? kJobLockTimeoutSeconds : kLockTimeoutSeconds;
    auto lock = std::make_shared<FileLock>(try_lock(output, kind, timeout));
    require_not_taken(output, *lock);
    if (lock->state() == FileLock::State::unsupported && kind == FileLock::Kind::exclusive) {
        std::cerr << fmt::format(
            "hpcai500: {}: its file system has no locks; make sure that no other program resumes "
            "the run\n",
            printable(output.string()));
    }
    return lock;
}

std::optional<bool> is_locked(const fs::path& output) {
    const FileLock::State state = poll_lock(output, FileLock::Kind::exclusive);
    if (state == FileLock::State::unsupported) return std::nullopt;
    return state == FileLock::State::taken;
}

bool is_being_resumed(const fs::path& output) {
    return poll_lock(output, FileLock::Kind::shared) == FileLock::State::taken;
}

std::shared_ptr<FileLock> share_directory(const context::RunContext& context,
                                          std::shared_ptr<FileLock> lock,
                                          comm::Communicator& everyone) {
    comm::collective_try(everyone, [&] {
        if (!lock) return;
        lock->downgrade();
        require_not_taken(context.output, *lock);
    });
    comm::collective_try(everyone, [&] {
        if (context.place.group_rank != 0 || lock) return;
        lock = lock_directory(context.output, FileLock::Kind::shared);
    });
    return lock;
}

}  // namespace hpcai::results
