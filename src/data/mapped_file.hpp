// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <utility>

namespace hpcai::data {

/// A regular file's bytes in memory, read by the system when they are touched.
class MappedFile {
public:
    /// Throws Error(data) naming the path when it cannot be mapped or has not `bytes` > 0 bytes.
    MappedFile(const std::filesystem::path& path, std::size_t bytes);
    MappedFile(MappedFile&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}
    MappedFile& operator=(MappedFile&&) = delete;
    ~MappedFile();

    std::span<const std::byte> bytes() const { return bytes_; }

private:
    std::span<const std::byte> bytes_;
};

}  // namespace hpcai::data
