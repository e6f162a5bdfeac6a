// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <system_error>

#include <sys/stat.h>

#include <hpcai/base/error.hpp>
#include <hpcai/storage/descriptor.hpp>
#include <hpcai/storage/pending_path.hpp>

namespace hpcai::storage {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail(const fs::path& target, const char* action, int error) {
    throw Error(ExitCode::usage, fmt::format("cannot write '{}': {}: {}", target.string(), action,
                                             std::strerror(error)));
}

void sync(const fs::path& path, const fs::path& target) {
    if (!try_sync(path)) fail(target, "fsync", errno);
}

/// The root of a file system cannot be replaced by a rename.
bool is_mount_point(const fs::path& folder) {
    struct stat inside {
    }, outside{};
    return ::stat(folder.c_str(), &inside) == 0 && ::stat((folder / "..").c_str(), &outside) == 0 &&
           S_ISDIR(inside.st_mode) && inside.st_dev != outside.st_dev;
}

void require_replaceable(const fs::path& target) {
    std::error_code error;
    const fs::path name = target.filename();
    require(!name.empty() && name != "." && name != "..", ExitCode::usage,
            "cannot write '{}': expected the name of a file or folder", target.string());
    require(!fs::is_symlink(target, error), ExitCode::usage,
            "cannot write '{}': it is a symbolic link; pass its target", target.string());
    require(!is_mount_point(target), ExitCode::usage,
            "cannot write '{}': it is a mount point; pass a folder below it", target.string());
}

}  // namespace

PendingPath::PendingPath(const fs::path& target)
    : target_(target.has_filename() ? target : target.parent_path()) {  // "set/" is "set"
    require_replaceable(target_);
    path_ =
        target_.parent_path() / fmt::format(".{}.{}.tmp", target_.filename().string(), ::getpid());
    std::error_code error;
    require(!fs::is_directory(path_, error), ExitCode::usage,
            "cannot write '{}': '{}' is in use or left by another program; remove it",
            target_.string(), path_.string());
}

PendingPath::~PendingPath() {
    std::error_code ignored;
    if (!is_committed_) fs::remove_all(path_, ignored);
}

void PendingPath::commit() {
    std::error_code error;
    if (fs::is_directory(path_, error)) {
        for (const auto& entry : fs::directory_iterator(path_, error)) sync(entry.path(), target_);
        if (error) fail(target_, "list", error.value());
    }
    sync(path_, target_);
    if (std::rename(path_.c_str(), target_.c_str()) != 0) fail(target_, "rename", errno);
    is_committed_ = true;
    sync(target_.has_parent_path() ? target_.parent_path() : fs::path("."), target_);
}

}  // namespace hpcai::storage
