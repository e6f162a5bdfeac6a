// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

namespace hpcai::storage {

/// A file or a folder of files that takes its name when it is complete. Until then it is written
/// under path(), a name of its own beside the wanted one; what is there when the object ends
/// without keep() is removed.
class PendingPath {
public:
    /// Makes nothing yet. Throws Error(usage) for a target that cannot take its name at the end: a
    /// symbolic link, a mount point, "." or ".."; or when a folder is there under path().
    explicit PendingPath(const std::filesystem::path& target);
    ~PendingPath();
    PendingPath(const PendingPath&) = delete;
    PendingPath& operator=(const PendingPath&) = delete;

    const std::filesystem::path& path() const noexcept { return path_; }
    /// Syncs the file, or the folder and the files directly in it, and gives it the wanted name.
    /// A file replaces one that is there, a folder an empty folder only. Throws Error(usage)
    /// naming the target when that fails.
    void keep();

private:
    std::filesystem::path target_;
    std::filesystem::path path_;
    bool kept_ = false;
};

}  // namespace hpcai::storage
