// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

namespace hpcai::storage {

/// A file or folder that gets its final name only when it is complete. The caller writes to path(),
/// a temporary name in the target's folder. Without commit(), the destructor removes path().
class PendingPath {
public:
    /// Creates no file. Throws Error(usage) if the target is a symbolic link, a mount point, "/",
    /// "." or "..", or if a folder exists at path().
    explicit PendingPath(const std::filesystem::path& target);
    ~PendingPath();
    PendingPath(const PendingPath&) = delete;
    PendingPath& operator=(const PendingPath&) = delete;

    const std::filesystem::path& path() const noexcept { return path_; }
    /// Syncs the file, or the folder and its direct entries, and renames it to the target. A file
    /// replaces an existing file; a folder replaces only an empty folder. Throws Error(usage)
    /// naming the target on failure.
    void commit();

private:
    std::filesystem::path target_;
    std::filesystem::path path_;
    bool is_committed_ = false;
};

}  // namespace hpcai::storage
