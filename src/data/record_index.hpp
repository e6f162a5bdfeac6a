// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>

#include <hpcai/data/record_set.hpp>

/// records.json: what a folder of records holds.
namespace hpcai::data {

std::uint32_t checksum_of(std::span<const std::byte> record);

void write_record_index(const RecordIndex& index, const std::filesystem::path& folder);
/// Throws Error(data) naming the file for anything that write_record_index would not write, and for
/// a file that a manifest.sha256 beside it lists with another sum.
RecordIndex read_record_index(const std::filesystem::path& folder);

/// Throws Error(data) for a file of samples whose name the index cannot hold: hidden, or not UTF-8.
void require_source_name(const std::filesystem::path& file);

}  // namespace hpcai::data
