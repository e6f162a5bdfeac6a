// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include <hpcai/storage/file.hpp>

namespace hpcai::storage {

/// SHA-256 (FIPS 180-4) of bytes that come in pieces.
class Sha256 {
public:
    Sha256();
    ~Sha256();
    Sha256(Sha256&&) noexcept;
    Sha256& operator=(Sha256&&) noexcept;

    void update(Bytes bytes);
    /// 64 lower-case hexadecimal digits; the object starts afresh.
    std::string finish_hex();

private:
    struct State;
    std::unique_ptr<State> state_;
};

std::string sha256_hex(Bytes bytes);

/// Whether `text` is what finish_hex() can return.
bool is_sha256_hex(std::string_view text);

/// Reads the file in pieces. Throws Error(data) naming the path when it cannot be read.
std::string sha256_hex_of_file(const std::filesystem::path& path);

}  // namespace hpcai::storage
