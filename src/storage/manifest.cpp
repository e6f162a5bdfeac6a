// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <system_error>

#include <fnmatch.h>

#include <hpcai/storage/file.hpp>
#include <hpcai/storage/manifest.hpp>
#include <hpcai/storage/sha256.hpp>

namespace hpcai::storage {
namespace {

constexpr std::size_t kMaxManifestBytes = 64 << 20;
constexpr std::size_t kDigits = 64;  // of a SHA-256

std::string escaped_name(const std::string& name) {
    std::string escaped;
    for (const char letter : name) {
        if (letter == '\\' || letter == '\n' || letter == '\r') escaped += '\\';
        escaped += letter == '\n' ? 'n' : letter == '\r' ? 'r' : letter;
    }
    return escaped;
}

std::string unescaped_name(std::string_view escaped) {
    std::string name;
    for (std::size_t i = 0; i < escaped.size(); ++i) {
        const bool is_pair = escaped[i] == '\\' && i + 1 < escaped.size();
        const char letter = is_pair ? escaped[++i] : escaped[i];
        name += !is_pair ? letter : letter == 'n' ? '\n' : letter == 'r' ? '\r' : letter;
    }
    return name;
}

}  // namespace

bool matches_any(const std::string& name, const std::set<std::string>& patterns) {
    return std::ranges::any_of(patterns, [&](const std::string& pattern) {
        return (pattern.ends_with('/') && name.starts_with(pattern)) ||
               ::fnmatch(pattern.c_str(), name.c_str(), FNM_PATHNAME) == 0;
    });
}

std::map<std::string, std::string, std::less<>> parse_manifest(std::string_view text,
                                                               const fs::path& manifest) {
    std::map<std::string, std::string, std::less<>> digests;
    while (!text.empty()) {
        std::string_view line = text.substr(0, text.find('\n'));
        text.remove_prefix(std::min(line.size() + 1, text.size()));
        const bool is_escaped = line.starts_with('\\');
        line.remove_prefix(is_escaped ? 1 : 0);
        const std::string_view digest = line.substr(0, kDigits);
        require(is_sha256_hex(digest), ExitCode::data, "'{}' has a line without a SHA-256 digest",
                manifest.string());
        // Also accepts lines of `sha256sum -b` and `sha256sum ./name`, and lines that end in CR.
        line.remove_prefix(kDigits);
        if (line.ends_with('\r')) line.remove_suffix(1);
        const bool has_path = line.starts_with("  ") || line.starts_with(" *");
        line.remove_prefix(has_path ? 2 : line.size());
        while (line.starts_with("./")) line.remove_prefix(2);
        require(!line.empty(), ExitCode::data, "'{}' has a line without a path", manifest.string());
        digests.insert_or_assign(is_escaped ? unescaped_name(line) : std::string(line), digest);
    }
    return digests;
}

bool matches_manifest(const fs::path& file) {
    const fs::path manifest = file.parent_path() / kManifestName;
    std::error_code error;
    if (!fs::exists(manifest, error)) return false;
    const auto digests = parse_manifest(read_file_text(manifest, kMaxManifestBytes), manifest);
    const auto found = digests.find(file.filename().string());
    if (found == digests.end()) return false;
    require(sha256_hex_of_file(file) == found->second, ExitCode::data,
            "'{}' is not the file that '{}' lists: its SHA-256 differs", file.string(),
            manifest.string());
    return true;
}

std::string manifest_text(const std::map<std::string, std::string, std::less<>>& digests) {
    std::string text;
    for (const auto& [name, digest] : digests) {
        const std::string escaped = escaped_name(name);
        // As in sha256sum, a backslash before the digest marks an escaped name.
        text += fmt::format("{}{}  {}\n", escaped == name ? "" : "\\", digest, escaped);
    }
    return text;
}

std::string make_manifest(const fs::path& folder, const std::set<std::string>& excluded) {
    std::map<std::string, std::string, std::less<>> digests;
    try {
        for (const auto& entry : fs::recursive_directory_iterator(folder)) {
            if (entry.is_symlink() || !entry.is_regular_file()) continue;
            const std::string name = entry.path().lexically_relative(folder).generic_string();
            if (name != kManifestName && !matches_any(name, excluded))
                digests[name] = sha256_hex_of_file(folder / name);
        }
    } catch (const fs::filesystem_error& error) {
        throw Error(ExitCode::data,
                    fmt::format("cannot list '{}': {}", folder.string(), error.code().message()));
    }
    return manifest_text(digests);
}

std::string write_manifest(const fs::path& folder) {
    const std::string text = make_manifest(folder);
    write_file_durably(folder / kManifestName, text);
    return sha256_hex(bytes_of(text));
}

}  // namespace hpcai::storage
