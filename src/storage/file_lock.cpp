// SPDX-License-Identifier: Apache-2.0
#include <sys/file.h>

#include <hpcai/storage/file_lock.hpp>

namespace hpcai::storage {
namespace {

/// Opens the file for writing if possible, because NFS requires that for an exclusive lock.
Descriptor open_to_lock(const fs::path& path) {
    Descriptor file(::open(path.c_str(), O_RDWR | O_CLOEXEC));
    if (!file.is_open()) file = Descriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    require(file.is_open(), ExitCode::data, "cannot open '{}': {}", path.string(),
            std::strerror(errno));
    return file;
}

FileLock::State lock(const Descriptor& file, FileLock::Kind kind) {
    const int operation = kind == FileLock::Kind::shared ? LOCK_SH : LOCK_EX;
    while (::flock(file.number(), operation | LOCK_NB) != 0) {
        if (errno == EINTR) continue;
        return errno == EWOULDBLOCK ? FileLock::State::taken : FileLock::State::unsupported;
    }
    return FileLock::State::held;
}

}  // namespace

FileLock::FileLock(const fs::path& path, Kind kind)
    : file_(open_to_lock(path)), state_(lock(file_, kind)) {}

void FileLock::downgrade() {
    if (state_ == State::held) state_ = lock(file_, Kind::shared);
}

}  // namespace hpcai::storage
