// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <string_view>

namespace hpcai::storage {

inline constexpr const char* kManifestName = "manifest.sha256";

/// Writes `folder`/manifest.sha256: one line per regular file below `folder` but itself and those
/// `left_out` (of a folder, by its name with a slash, all), in the format of `sha256sum`, paths
/// relative to `folder` and sorted by their bytes, so that `sha256sum --check manifest.sha256` in
/// that folder proves it. Symbolic links are not followed and, like devices and pipes, not listed.
/// Returns the SHA-256 of the manifest's text. Throws Error(usage) when the manifest cannot be
/// written, Error(data) when a file or folder cannot be read.
std::string write_manifest(const std::filesystem::path& folder,
                           const std::set<std::string>& left_out = {});

/// Compares `file` with the manifest.sha256 in its folder. Returns false where there is none or it
/// does not list the file. Throws Error(data) naming the file when its SHA-256 is another, or the
/// manifest when it is not one.
bool matches_manifest(const std::filesystem::path& file);

/// What `text`, a manifest, says: path relative to its folder, SHA-256. The last line for a path
/// holds. Throws Error(data) naming `manifest` for a line that is none.
std::map<std::string, std::string, std::less<>> parse_manifest(
    std::string_view text, const std::filesystem::path& manifest);

/// The text of a manifest that says this, as write_manifest writes it.
std::string manifest_text(const std::map<std::string, std::string, std::less<>>& digests);

}  // namespace hpcai::storage
