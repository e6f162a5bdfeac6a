// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string_view>
#include <vector>

namespace hpcai::storage {

using Bytes = std::span<const std::byte>;

inline Bytes bytes_of(std::string_view text) {
    return std::as_bytes(std::span(text));
}

inline std::string_view text_of(Bytes bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// Atomically and durably replaces the file at `path` by the concatenated `parts`. Readers, also
/// after a crash of the machine, see the old file or the complete new file. Throws Error(usage)
/// naming the path on any failure, such as a full disk, and leaves no temporary file.
void write_file_durably(const std::filesystem::path& path, std::span<const Bytes> parts);
void write_file_durably(const std::filesystem::path& path, std::string_view text);

/// Like write_file_durably, but does not sync. Readers see the old file or the complete new file; a
/// crash of the machine may lose both.
void replace_file(const std::filesystem::path& path, std::string_view text);

/// Creates a folder and its missing parents, and syncs each parent folder that changed. Several
/// processes may create it at the same time. Throws Error(usage) naming the folder.
void make_folder_durably(const std::filesystem::path& folder);

/// Read a regular file. Throw Error(data) naming the path if it cannot be read, is not a regular
/// file, has more than `limit_bytes`, or grows while it is read.
std::vector<std::byte> read_file_bytes(const std::filesystem::path& path, std::size_t limit_bytes);
std::string read_file_text(const std::filesystem::path& path, std::size_t limit_bytes);

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
