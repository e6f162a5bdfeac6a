// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "pack_plan.hpp"

namespace hpcai::data::staging {

inline constexpr const char* kIndexSuffix = ".index";
inline constexpr const char* kIndexSchema = "hpcai500-pack/1";

/// The contents of `<pack>.index`. It is written before the pack gets its name, so a pack with an
/// index was written by this program.
struct PackIndex {
    std::string fingerprint;
    std::uint64_t bytes = 0;
    std::vector<std::string> digests;  // SHA-256 of each file; empty if it could not be read

    /// Returns whether the index belongs to `pack`, without a check of digests.
    bool is_of(const Pack& pack) const {
        return fingerprint == pack.fingerprint && bytes == pack.bytes &&
               digests.size() == pack.files.size();
    }
    bool has_all() const {
        return std::ranges::none_of(digests, [](const auto& digest) { return digest.empty(); });
    }
};

std::filesystem::path index_path(const std::filesystem::path& pack);

/// Writes the index durably. Throws Error(usage) when it cannot be written.
void write_index(const std::filesystem::path& pack, const PackIndex& index);

/// Returns the index of the pack, or nothing if it is missing or invalid.
std::optional<PackIndex> read_index(const std::filesystem::path& pack);

}  // namespace hpcai::data::staging
