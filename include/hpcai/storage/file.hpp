// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <unistd.h>

#include <hpcai/base/error.hpp>

namespace hpcai {
namespace fs = std::filesystem;
}

namespace hpcai::storage {

using Bytes = std::span<const std::byte>;

inline Bytes bytes_of(std::string_view text) {
    return std::as_bytes(std::span(text));
}

inline std::string_view text_of(Bytes bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// Atomically and durably replaces the file at `path` by the concatenated `parts`. Even after a
/// crash of the machine, readers see the old file or the complete new file. On any failure, such as
/// a full disk, throws Error(usage) naming the path and leaves no temporary file.
void write_file_durably(const fs::path& path, std::span<const Bytes> parts);
void write_file_durably(const fs::path& path, std::string_view text);

/// Like write_file_durably, but does not sync. Readers see the old file or the complete new file; a
/// crash of the machine may lose both.
void replace_file(const fs::path& path, std::string_view text);

/// Creates a folder and its missing parents, and syncs each parent folder that changed. Several
/// processes may create it at the same time. On failure, throws Error(usage) naming a folder.
void make_folder_durably(const fs::path& folder);

/// Read a regular file. Throw Error(data) naming the path if it cannot be read, is not a regular
/// file, has more than `limit_bytes`, or grows while it is read.
std::vector<std::byte> read_file_bytes(const fs::path& path, std::size_t limit_bytes);
std::string read_file_text(const fs::path& path, std::size_t limit_bytes);

/// Returns whether a file or folder exists; false if that cannot be determined.
inline bool path_exists(const std::filesystem::path& path) {
    std::error_code error;
    return std::filesystem::exists(path, error);
}

/// A file or folder that gets its final name only when it is complete. The caller writes to path(),
/// a temporary name in the target's folder. Without commit(), the destructor removes path().
class PendingPath {
public:
    /// Creates no file. Throws Error(usage) if a folder exists at path(). The target must not be
    /// empty, "/", a symbolic link, a mount point or a path that ends in "." or "..".
    explicit PendingPath(const fs::path& target);
    ~PendingPath();
    PendingPath(const PendingPath&) = delete;
    PendingPath& operator=(const PendingPath&) = delete;

    const fs::path& path() const noexcept { return path_; }
    /// Syncs the file, or the folder and its direct entries, and renames it to the target. A file
    /// replaces an existing file; a folder replaces only an empty folder. Throws Error(usage)
    /// naming the target on failure.
    void commit();

private:
    fs::path target_;
    fs::path path_;
    bool is_committed_ = false;
};

/// Owns the descriptor of an open file or folder, or none.
class Descriptor {
public:
    explicit Descriptor(int number) noexcept : number_(number) {}
    Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
    Descriptor& operator=(Descriptor&& other) noexcept {
        std::swap(number_, other.number_);
        return *this;
    }
    ~Descriptor() {
        if (number_ >= 0) ::close(number_);
    }

    bool is_open() const noexcept { return number_ >= 0; }
    int number() const noexcept { return number_; }
    /// Closes the descriptor. Returns false, with errno set, if the system reports an error, which
    /// the destructor would ignore.
    bool close() noexcept { return ::close(std::exchange(number_, -1)) == 0; }

private:
    int number_;
};

/// Opens a regular file for reading. Throws Error(data) naming the path on failure.
Descriptor open_for_reading(const fs::path& path);

/// Reads until `buffer` is full or the file ends. Returns the number of bytes read. After a read
/// error, returns no value and sets errno. With an `offset`, reads from that byte on; the file
/// position is neither used nor changed.
std::optional<std::size_t> try_read(const Descriptor& file, std::span<std::byte> buffer,
                                    std::optional<std::int64_t> offset = {}) noexcept;

/// Like try_read, but throws Error(data) naming the path after a read error.
std::size_t read_full(const Descriptor& file, const fs::path& path, std::span<std::byte> buffer);

/// Writes all of `bytes`. Returns false, with errno set, on failure.
bool try_write(const Descriptor& file, std::span<const std::byte> bytes) noexcept;

/// Syncs a file or folder to disk. Returns false, with errno set, on failure. Ignores EINVAL,
/// because some network file systems cannot sync a folder.
bool try_sync(const fs::path& path) noexcept;

}  // namespace hpcai::storage
