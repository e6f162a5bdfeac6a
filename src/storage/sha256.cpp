// SPDX-License-Identifier: Apache-2.0
#include <array>

#include <fmt/format.h>
#include <openssl/evp.h>

#include <hpcai/storage/sha256.hpp>

namespace hpcai::storage {

Sha256::Sha256() : context_(EVP_MD_CTX_new(), EVP_MD_CTX_free) {
    ensure(context_ && EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr) == 1,
           "SHA-256 could not be started");
}

void Sha256::update(Bytes bytes) {
    ensure(EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()) == 1,
           "SHA-256 failed for {} bytes", bytes.size());
}

std::string Sha256::finish_hex() {
    std::array<unsigned char, 32> digest{};
    ensure(EVP_DigestFinal_ex(context_.get(), digest.data(), nullptr) == 1 &&
               EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr) == 1,
           "SHA-256 could not be finished");
    return fmt::format("{:02x}", fmt::join(digest, ""));
}

std::string sha256_hex(Bytes bytes) {
    Sha256 hash;
    hash.update(bytes);
    return hash.finish_hex();
}

bool is_sha256_hex(std::string_view text) {
    return text.size() == 64 &&
           text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

std::string sha256_hex_of_file(const fs::path& path) {
    const Descriptor file = open_for_reading(path);
    std::vector<std::byte> buffer(std::size_t{1} << 20);
    Sha256 hash;
    while (const std::size_t count = read_full(file, path, buffer)) {
        hash.update(Bytes(buffer).first(count));
    }
    return hash.finish_hex();
}

}  // namespace hpcai::storage
