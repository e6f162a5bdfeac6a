// SPDX-License-Identifier: Apache-2.0
#include <hpcai/report/summary.hpp>
#include <hpcai/storage/manifest.hpp>
#include <hpcai/storage/sha256.hpp>

#include "checks.hpp"

namespace hpcai::verification {
namespace {

void check_file(const std::string& name, const std::string& listed, Inspector& inspector) {
    if (!inspector.entries().at(name)) {
        inspector.find(name, "is no regular file; {} lists one", storage::kManifestName);
        return;
    }
    inspector.attempt(name, [&] {
        const std::string digest = storage::sha256_hex_of_file(inspector.path_of(name));
        if (digest != listed) {
            inspector.find(name, "has the SHA-256 {}; must have {}, as {} lists it", digest, listed,
                           storage::kManifestName);
        }
        return 0;
    });
}

}  // namespace

std::string check_manifest(Inspector& inspector) {
    const auto text = inspector.text_of(storage::kManifestName);
    if (!text) return "";
    const auto listed = inspector.attempt(storage::kManifestName, [&] {
        return storage::parse_manifest(*text, storage::kManifestName);
    });
    if (!listed) return storage::sha256_hex(storage::bytes_of(*text));
    inspector.compare_lines(storage::kManifestName, *text, storage::manifest_text(*listed));
    for (const auto& [name, digest] : *listed) {
        if (!inspector.has(name)) {
            inspector.find(name, "is missing; {} lists it", storage::kManifestName);
        } else {
            check_file(name, digest, inspector);
        }
    }
    for (const auto& [name, is_regular] : inspector.entries()) {
        if (name == storage::kManifestName || name == report::kSummaryName) continue;
        if (name.starts_with("checkpoints/")) continue;  // of groups that may still go on
        if (!listed->contains(name)) {
            inspector.find(name, "is there; {} does not list it", storage::kManifestName);
        }
    }
    return storage::sha256_hex(storage::bytes_of(*text));
}

}  // namespace hpcai::verification
