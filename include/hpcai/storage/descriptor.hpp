// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <optional>
#include <span>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

#include <hpcai/base/error.hpp>

namespace hpcai::storage {

/// Owns the descriptor of an open file or folder; may be empty.
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
    /// Closes the descriptor before the destructor does. Returns false, with errno set, if the
    /// system reports an error.
    bool close() noexcept { return ::close(std::exchange(number_, -1)) == 0; }

private:
    int number_;
};

/// Opens a regular file for reading. Throws Error(data) naming the path on failure.
Descriptor open_for_reading(const std::filesystem::path& path);

/// Reads until `buffer` is full or the file ends. Returns the number of bytes read; empty, with
/// errno set, after a read error.
std::optional<std::size_t> try_read(const Descriptor& file, std::span<std::byte> buffer) noexcept;

/// Like try_read, but throws Error(data) naming the path after a read error.
std::size_t read_some(const Descriptor& file, const std::filesystem::path& path,
                      std::span<std::byte> buffer);

/// Writes all of `bytes`. Returns false, with errno set, on failure.
bool try_write(const Descriptor& file, std::span<const std::byte> bytes) noexcept;

/// Syncs a file or folder to disk. Returns false, with errno set, on failure. Ignores EINVAL,
/// because some network file systems cannot sync a folder.
bool try_sync(const std::filesystem::path& path) noexcept;

}  // namespace hpcai::storage
