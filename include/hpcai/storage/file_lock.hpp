// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

#include <hpcai/storage/descriptor.hpp>

namespace hpcai::storage {

/// A lock of a whole file that programs take which must not work at the same time: released with
/// the object, and by the death of its process, whatever that dies of. Its bytes are not touched.
class FileLock {
public:
    enum class Kind {
        exclusive,  // of one
        shared,     // of any number, beside none that is exclusive
    };

    /// Does not wait. Throws Error(data) naming the file when it cannot be opened.
    explicit FileLock(const std::filesystem::path& path, Kind kind = Kind::exclusive);

    enum class State {
        held,
        taken,  // by another object or program
        none,   // this file system has no locks, or none that reach other nodes, as it says
    };
    State state() const noexcept { return state_; }

    /// Lets others have it beside this one, too, if it is held. Another may come between, which
    /// then holds it alone: the state tells.
    void share();

private:
    Descriptor file_;
    State state_;
};

}  // namespace hpcai::storage
