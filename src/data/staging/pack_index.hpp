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

/// The contents of `<pack>.index`. The index is written before the pack is renamed to its final
/// name, so a pack with an index was written by this program.
struct PackIndex {
    std::string fingerprint;
    std::uint64_t bytes = 0;
    std::vector<std::string> digests;  // SHA-256 of each file; empty if it could not be read

    /// Returns whether the index belongs to `pack`. Does not compare digests with files.
    bool matches(const Pack& pack) const {
        return fingerprint == pack.fingerprint && bytes == pack.bytes &&
               digests.size() == pack.files.size();
    }
    bool is_complete() const {
        return std::ranges::none_of(digests, [](const auto& digest) { return digest.empty(); });
    }
};

std::filesystem::path index_path(const std::filesystem::path& pack);

/// Writes the index durably. Throws Error(usage) when it cannot be written.
void write_index(const std::filesystem::path& pack, const PackIndex& index);

/// Returns the index of the pack, or nothing if it is missing or invalid.
std::optional<PackIndex> read_index(const std::filesystem::path& pack);

}  // namespace hpcai::data::staging
