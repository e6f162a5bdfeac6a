// SPDX-License-Identifier: Apache-2.0
#include "pack_index.hpp"

#include <algorithm>

#include <nlohmann/json.hpp>

#include <hpcai/base/error.hpp>
#include <hpcai/storage/file.hpp>
#include <hpcai/storage/sha256.hpp>
#include <hpcai/storage/strict_json.hpp>

namespace hpcai::data::staging {
namespace {

using nlohmann::json;

constexpr std::size_t kMaxPackIndexBytes = std::size_t{256} << 20;

/// Throws json::exception for members that are missing or have another type.
std::optional<PackIndex> from_json(const json& document) {
    if (!document.is_object() || document.at("schema").get<std::string>() != kIndexSchema ||
        !document.at("bytes").is_number_unsigned()) {
        return std::nullopt;
    }
    PackIndex index{document.at("fingerprint").get<std::string>(),
                    document.at("bytes").get<std::uint64_t>(),
                    document.at("sha256").get<std::vector<std::string>>()};
    const auto is_entry = [](const std::string& text) {
        return text.empty() || storage::is_sha256_hex(text);
    };
    if (!storage::is_sha256_hex(index.fingerprint) ||
        !std::ranges::all_of(index.digests, is_entry)) {
        return std::nullopt;
    }
    return index;
}

}  // namespace

std::filesystem::path index_path(const std::filesystem::path& pack) {
    return pack.string() + kIndexSuffix;
}

void write_index(const std::filesystem::path& pack, const PackIndex& index) {
    const json document{{"schema", kIndexSchema},
                        {"fingerprint", index.fingerprint},
                        {"bytes", index.bytes},
                        {"sha256", index.digests}};
    storage::write_file_durably(index_path(pack), document.dump() + "\n");
}

std::optional<PackIndex> read_index(const std::filesystem::path& pack) {
    try {
        const std::vector<std::byte> bytes =
            storage::read_file_bytes(index_path(pack), kMaxPackIndexBytes);
        return from_json(storage::parse_strict_json(storage::text_of(bytes), pack.string()));
    } catch (const Error&) {
        return std::nullopt;
    } catch (const json::exception&) {
        return std::nullopt;
    }
}

}  // namespace hpcai::data::staging
