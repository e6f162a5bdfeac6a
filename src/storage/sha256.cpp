// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <vector>

#include <openssl/evp.h>

#include <hpcai/storage/descriptor.hpp>
#include <hpcai/storage/sha256.hpp>

namespace hpcai::storage {

struct Sha256::State {
    struct Free {
        void operator()(EVP_MD_CTX* context) const noexcept { EVP_MD_CTX_free(context); }
    };
    std::unique_ptr<EVP_MD_CTX, Free> context{EVP_MD_CTX_new()};

    State() { start(); }
    void start() {
        ensure(context && EVP_DigestInit_ex(context.get(), EVP_sha256(), nullptr) == 1,
               "SHA-256 could not be started");
    }
};

Sha256::Sha256() : state_(std::make_unique<State>()) {}
Sha256::~Sha256() = default;
Sha256::Sha256(Sha256&&) noexcept = default;
Sha256& Sha256::operator=(Sha256&&) noexcept = default;

void Sha256::update(Bytes bytes) {
    ensure(EVP_DigestUpdate(state_->context.get(), bytes.data(), bytes.size()) == 1,
           "SHA-256 of {} bytes", bytes.size());
}

std::string Sha256::finish_hex() {
    std::array<unsigned char, 32> digest{};
    ensure(EVP_DigestFinal_ex(state_->context.get(), digest.data(), nullptr) == 1,
           "SHA-256 could not be finished");
    state_->start();
    std::string text;
    for (const unsigned char byte : digest) text += fmt::format("{:02x}", byte);
    return text;
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

std::string sha256_hex_of_file(const std::filesystem::path& path) {
    const Descriptor file = open_for_reading(path);
    std::vector<std::byte> buffer(std::size_t{1} << 20);
    Sha256 hash;
    while (const std::size_t count = read_some(file, path, buffer)) {
        hash.update(Bytes(buffer).first(count));
    }
    return hash.finish_hex();
}

}  // namespace hpcai::storage
