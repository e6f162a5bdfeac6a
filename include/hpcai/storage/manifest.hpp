// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <string_view>

namespace hpcai::storage {

inline constexpr const char* kManifestName = "manifest.sha256";

/// Whether a relative path matches one of the patterns, such as "name", "folder/" for all files
/// below a folder, or "groups/*/name", in which * is any text without '/'.
bool matches_any(const std::string& name, const std::set<std::string>& patterns);

/// Returns the text of a manifest of `folder` in the format of `sha256sum`. It lists each regular
/// file below `folder` by its relative path, in bytewise order of paths. It omits manifest.sha256,
/// symbolic links, and the paths that match `excluded`. Throws Error(data) if a file or folder
/// cannot be read.
std::string make_manifest(const std::filesystem::path& folder,
                          const std::set<std::string>& excluded = {});

/// Writes make_manifest() to `folder`/manifest.sha256. Returns the SHA-256 of its text. Throws as
/// make_manifest(), and Error(usage) if the file cannot be written.
std::string write_manifest(const std::filesystem::path& folder);

/// Compares `file` with the manifest.sha256 in its folder. Returns false if there is no manifest or
/// it does not list the file. Throws Error(data) naming the file if it cannot be read or its
/// SHA-256 differs, or naming the manifest if it is malformed, unreadable or over 64 MiB.
bool matches_manifest(const std::filesystem::path& file);

/// Returns SHA-256 by path relative to the manifest's folder; of equal paths, the last line counts.
/// Throws Error(data) naming `manifest` for a line that lacks a SHA-256 or a path.
std::map<std::string, std::string, std::less<>> parse_manifest(
    std::string_view text, const std::filesystem::path& manifest);

/// Returns the text of a manifest. `digests` has the SHA-256 of each file by its path.
std::string manifest_text(const std::map<std::string, std::string, std::less<>>& digests);

}  // namespace hpcai::storage
