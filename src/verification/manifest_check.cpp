// SPDX-License-Identifier: Apache-2.0
#include <set>

#include <hpcai/base/text.hpp>
#include <hpcai/report/summary.hpp>
#include <hpcai/storage/manifest.hpp>
#include <hpcai/storage/sha256.hpp>

#include "checks.hpp"

namespace hpcai::verification {
namespace {

namespace fs = std::filesystem;

/// All that is no folder, by its path in the directory.
std::set<std::string> entries_below(const fs::path& directory) {
    std::set<std::string> names;
    try {
        for (const auto& entry : fs::recursive_directory_iterator(directory)) {
            if (entry.is_directory() && !entry.is_symlink()) continue;
            names.insert(entry.path().lexically_relative(directory).generic_string());
        }
    } catch (const fs::filesystem_error& error) {
        throw Error(ExitCode::usage, fmt::format("cannot list '{}': {}", directory.string(),
                                                 error.code().message()));
    }
    return names;
}

void check_file(const std::string& name, const std::string& listed, Inspector& inspector) {
    const fs::path path = inspector.directory() / name;
    if (fs::is_symlink(path) || !fs::is_regular_file(path)) {
        inspector.find(name, "is no regular file; {} lists one", storage::kManifestName);
        return;
    }
    inspector.attempt(name, [&] {
        const std::string digest = storage::sha256_hex_of_file(path);
        if (digest != listed) {
            inspector.find(name, "has the SHA-256 {}; must have {}, as {} lists it", digest, listed,
                           storage::kManifestName);
        }
        return 0;
    });
}

}  // namespace

std::string check_manifest(Inspector& inspector) {
    const std::set<std::string> found = entries_below(inspector.directory());
    const auto text = inspector.text_of(storage::kManifestName);
    if (!text) return "";
    const auto listed = inspector.attempt(storage::kManifestName, [&] {
        return storage::parse_manifest(*text, storage::kManifestName);
    });
    if (!listed) return storage::sha256_hex(storage::bytes_of(*text));
    for (const auto& [name, digest] : *listed) {
        if (!found.contains(name)) {
            inspector.find(printable(name), "is missing; {} lists it", storage::kManifestName);
        } else {
            check_file(name, digest, inspector);
        }
    }
    for (const std::string& name : found) {
        if (name == storage::kManifestName || name == report::kSummaryName) continue;
        if (!listed->contains(name)) {
            inspector.find(printable(name), "is there; {} does not list it",
                           storage::kManifestName);
        }
    }
    return storage::sha256_hex(storage::bytes_of(*text));
}

}  // namespace hpcai::verification
