// SPDX-License-Identifier: Apache-2.0
#include "pack_plan.hpp"

#include <set>

#include <hpcai/base/error.hpp>
#include <hpcai/storage/sha256.hpp>

namespace hpcai::data::staging {
namespace {

constexpr std::size_t kMaxFiles = 100'000;  // in a pack, whose index then has 7 MB

std::string fingerprint_of(const Source& source, const std::vector<std::uint32_t>& files) {
    storage::Sha256 hash;
    const auto add = [&](std::string text) {
        text.push_back('\0');  // a separator that no path contains
        hash.update(storage::bytes_of(text));
    };
    add(std::filesystem::absolute(source.root).lexically_normal().string());
    for (const std::uint32_t file : files) {
        const FileFacts& facts = source.facts[file];
        add(source.path_of(file));
        add(fmt::format("{} {} {}", facts.bytes, facts.modified_seconds,
                        facts.modified_nanoseconds));
    }
    return hash.finish_hex();
}

}  // namespace

std::vector<Pack> plan_packs(const Source& source, const std::vector<std::uint8_t>& needed,
                             std::uint64_t pack_bytes, std::uint64_t largest_bytes) {
    std::vector<Pack> packs;
    for (std::uint32_t file = 0; file < source.files; ++file) {
        if (needed[file] == 0 || source.facts[file].bytes < 0) continue;
        const auto bytes = static_cast<std::uint64_t>(source.facts[file].bytes);
        if (bytes > largest_bytes) continue;
        if (packs.empty() || packs.back().bytes + bytes > pack_bytes ||
            packs.back().files.size() == kMaxFiles) {
            packs.push_back({fmt::format("pack-{:06}", packs.size()), {}, 0, ""});
        }
        packs.back().files.push_back(file);
        packs.back().bytes += bytes;
    }
    for (Pack& pack : packs) pack.fingerprint = fingerprint_of(source, pack.files);
    return packs;
}

std::vector<Pack> plan_whole_files(const Source& source) {
    std::vector<Pack> packs;
    std::set<std::string> names;
    for (std::uint32_t file = 0; file < source.files; ++file) {
        const std::string name = source.path_of(file);
        const FileFacts& facts = source.facts[file];
        require(facts.bytes >= 0, ExitCode::data, "cannot read '{}': not a regular file",
                source.full_path(file).string());
        const bool is_plain = !name.empty() && !name.starts_with('.') &&
                              !name.ends_with(".index") && name.find('/') == std::string::npos;
        require(is_plain, ExitCode::data, "'{}': a name that cannot be staged",
                source.full_path(file).string());
        require(names.insert(name).second, ExitCode::data, "'{}': listed twice",
                source.full_path(file).string());
        packs.push_back({name,
                         {file},
                         static_cast<std::uint64_t>(facts.bytes),
                         fingerprint_of(source, {file})});
    }
    return packs;
}

}  // namespace hpcai::data::staging
