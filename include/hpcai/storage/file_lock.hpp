// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <hpcai/storage/file.hpp>

namespace hpcai::storage {

/// An advisory lock (flock) on a file. It excludes only objects and programs that also lock the
/// file. The lock ends with the object or its process. The contents of the file do not change.
class FileLock {
public:
    enum class Kind {
        exclusive,  // one holder
        shared,     // any number of holders, but no exclusive one
    };

    /// Never blocks. Throws Error(data) naming the file when it cannot be opened.
    explicit FileLock(const fs::path& path, Kind kind = Kind::exclusive);

    enum class State {
        held,
        taken,        // another object or program has a lock that excludes this one
        unsupported,  // flock failed for another reason, as on a file system without locks
    };
    State state() const noexcept { return state_; }

    /// Replaces a held lock by a shared one. This is not atomic: another program may take an
    /// exclusive lock meanwhile, so check state() afterwards.
    void downgrade();

private:
    Descriptor file_;
    State state_;
};

}  // namespace hpcai::storage
