// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

#include <hpcai/storage/descriptor.hpp>

namespace hpcai::storage {

/// A lock of a whole file that programs take which must not work at the same time: released with
/// the object, and by the death of its process, whatever that dies of. Its bytes are not touched.
class FileLock {
public:
    /// Does not wait. Throws Error(data) naming the file when it cannot be opened.
    explicit FileLock(const std::filesystem::path& path);

    enum class State {
        held,
        taken,  // by another object or program
        none,   // this file system has no locks, or none that reach other nodes, as it says
    };
    State state() const noexcept { return state_; }

private:
    Descriptor file_;
    State state_;
};

}  // namespace hpcai::storage
