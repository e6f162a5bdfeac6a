// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>
#include <vector>

#include <hpcai/base/error.hpp>
#include <hpcai/storage/file.hpp>
#include <hpcai/storage/manifest.hpp>
#include <hpcai/storage/sha256.hpp>

namespace hpcai::storage {
namespace {

std::vector<std::string> files_below(const std::filesystem::path& folder) {
    std::vector<std::string> names;
    try {
        for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
            if (entry.is_symlink() || !entry.is_regular_file()) continue;
            names.push_back(entry.path().lexically_relative(folder).generic_string());
        }
    } catch (const std::filesystem::filesystem_error& error) {
        throw Error(ExitCode::data,
                    fmt::format("cannot list '{}': {}", folder.string(), error.code().message()));
    }
    std::erase(names, kManifestName);
    std::sort(names.begin(), names.end());
    return names;
}

/// sha256sum puts a backslash before the line when it had to escape the name.
std::string manifest_line(const std::string& digest, const std::string& name) {
    std::string escaped;
    for (const char letter : name) {
        if (letter == '\\') {
            escaped += "\\\\";
        } else if (letter == '\n') {
            escaped += "\\n";
        } else if (letter == '\r') {
            escaped += "\\r";
        } else {
            escaped += letter;
        }
    }
    return fmt::format("{}{}  {}\n", escaped == name ? "" : "\\", digest, escaped);
}

}  // namespace

void write_manifest(const std::filesystem::path& folder) {
    std::string text;
    for (const std::string& name : files_below(folder)) {
        text += manifest_line(sha256_hex_of_file(folder / name), name);
    }
    write_file_durably(folder / kManifestName, text);
}

}  // namespace hpcai::storage
