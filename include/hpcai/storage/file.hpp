// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string_view>
#include <vector>

namespace hpcai::storage {

using Bytes = std::span<const std::byte>;

inline Bytes bytes_of(std::string_view text) {
    return std::as_bytes(std::span(text));
}

inline std::string_view text_of(Bytes bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// Replaces the file at `path` by `parts`, one after the other. A reader, and a machine that
/// restarts, sees the old file or the whole new one: the bytes go to a temporary file in the same
/// folder, which is synced, renamed, and the folder synced. On failure the temporary file is
/// removed. Throws Error(usage) naming the path when the folder is missing or not writable, or
/// when the disk is full.
void write_file_durably(const std::filesystem::path& path, std::span<const Bytes> parts);
void write_file_durably(const std::filesystem::path& path, std::string_view text);

/// Replaces the file at `path` by `text` as write_file_durably does, but without waiting for a
/// disk: a reader sees the old file or the whole new one, a machine that restarts may see neither.
void replace_file(const std::filesystem::path& path, std::string_view text);

/// Makes a folder and those above it that are missing, and syncs every folder that one was made in.
/// Several processes may do so at once. Throws Error(usage) naming the folder.
void make_folder_durably(const std::filesystem::path& folder);

/// The whole of a regular file. Throws Error(data) naming the path when it cannot be read, is not
/// a regular file, or has more than `limit_bytes`.
std::vector<std::byte> read_file_bytes(const std::filesystem::path& path, std::size_t limit_bytes);

}  // namespace hpcai::storage
