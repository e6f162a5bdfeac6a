// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <stdlib.h>

#include <hpcai/base/error.hpp>

namespace hpcai::storage {

/// A new empty folder, removed by the destructor.
class TemporaryFolder {
public:
    TemporaryFolder() {
        std::string pattern = (std::filesystem::temp_directory_path() / "hpcai-XXXXXX").string();
        if (::mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("mkdtemp");
        path_ = pattern;
    }
    TemporaryFolder(const TemporaryFolder&) = delete;
    TemporaryFolder& operator=(const TemporaryFolder&) = delete;
    ~TemporaryFolder() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }
    std::filesystem::path operator/(const std::string& name) const { return path_ / name; }
    const std::filesystem::path& path() const { return path_; }

private:
    std::filesystem::path path_;
};

/// Returns the message of the hpcai::Error with `code` that `action` throws. If it throws no error
/// or another one, fails the test and returns "".
inline std::string error_of(ExitCode code, const std::function<void()>& action) {
    try {
        action();
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), code) << error.what();
        return error.what();
    }
    ADD_FAILURE() << "nothing was thrown";
    return {};
}

/// Deterministic small numbers (a 64-bit linear congruential generator, Knuth's constants).
class Dice {
public:
    explicit Dice(std::uint64_t seed) : state_(seed) {}
    std::size_t below(std::size_t limit) {
        state_ = state_ * 6364136223846793005ULL + 1442695040888963407ULL;
        return static_cast<std::size_t>(state_ >> 33) % limit;
    }

private:
    std::uint64_t state_;
};

/// Changes 1 to 4 bytes, truncates, or inserts.
inline std::vector<std::byte> mutated(std::vector<std::byte> bytes, Dice& dice) {
    const std::size_t kind = dice.below(4);
    if (kind == 0) {
        bytes.resize(dice.below(bytes.size()));
    } else if (kind == 1) {
        const auto place = static_cast<std::ptrdiff_t>(dice.below(bytes.size()));
        bytes.insert(bytes.begin() + place, std::byte(dice.below(256)));
    } else {
        for (std::size_t change = 0; change < 1 + dice.below(4); ++change) {
            bytes[dice.below(bytes.size())] = std::byte(dice.below(256));
        }
    }
    return bytes;
}

}  // namespace hpcai::storage
