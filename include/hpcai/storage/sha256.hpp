// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include <hpcai/storage/file.hpp>

struct evp_md_ctx_st;  // OpenSSL's hash state, EVP_MD_CTX

namespace hpcai::storage {

/// Incremental SHA-256 (FIPS 180-4).
class Sha256 {
public:
    Sha256();

    void update(Bytes bytes);
    /// Returns 64 lower-case hexadecimal digits and resets the object.
    std::string finish_hex();

private:
    std::unique_ptr<evp_md_ctx_st, void (*)(evp_md_ctx_st*)> context_;
};

std::string sha256_hex(Bytes bytes);

/// Returns whether `text` is 64 lower-case hexadecimal digits.
bool is_sha256_hex(std::string_view text);

/// Hashes a file. Throws Error(data) naming the path if it cannot be read.
std::string sha256_hex_of_file(const fs::path& path);

}  // namespace hpcai::storage
