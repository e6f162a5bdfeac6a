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

/// An open file or folder, closed with the object; or none.
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

    bool open() const noexcept { return number_ >= 0; }
    int number() const noexcept { return number_; }
    /// Closes it before the object ends. False, with errno set, when the system reports an error.
    bool close() noexcept { return ::close(std::exchange(number_, -1)) == 0; }

private:
    int number_;
};

/// A regular file opened for reading. Throws Error(data) naming the path.
Descriptor open_for_reading(const std::filesystem::path& path);

/// Fills `buffer` as far as the file goes. Returns the number of bytes read, less than asked at the
/// end of the file only; nothing, with errno set, when they cannot be read.
std::optional<std::size_t> try_read(const Descriptor& file, std::span<std::byte> buffer) noexcept;

/// Does likewise, but throws Error(data) naming the path.
std::size_t read_some(const Descriptor& file, const std::filesystem::path& path,
                      std::span<std::byte> buffer);

/// Writes all of `bytes`. False, with errno set, when they cannot be written.
bool try_write(const Descriptor& file, std::span<const std::byte> bytes) noexcept;

/// Waits until a file or folder is on the disk. False, with errno set, when that fails. Some
/// network file systems cannot sync a folder and say EINVAL, which is no failure.
bool try_sync(const std::filesystem::path& path) noexcept;

}  // namespace hpcai::storage
