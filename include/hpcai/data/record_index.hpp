// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include <hpcai/data/box.hpp>
#include <hpcai/data/climate_channels.hpp>
#include <hpcai/tensor/dtype.hpp>

/// records.json: what a folder of records holds.
namespace hpcai::data {

inline constexpr const char* kRecordIndexName = "records.json";

struct IndexedRecord {
    std::int64_t number = 0;     // of the sample in its source
    std::uint32_t checksum = 0;  // CRC-32 of the record (zlib's)
    std::vector<Box> boxes;
};

struct IndexedFile {
    std::string name;            // in the folder
    std::string source;          // name of the file that the samples came from
    std::string generator = {};  // ClimateFile::generator() of that file
    std::vector<IndexedRecord> records;
};

struct RecordIndex {
    tensor::DType dtype = tensor::DType::f16;
    int height = 0;
    int width = 0;
    std::vector<std::string> channels;
    ChannelStatistics statistics;
    std::vector<IndexedFile> files;

    std::size_t record_bytes() const;
};

std::uint32_t checksum_of(std::span<const std::byte> record);

void write_record_index(const RecordIndex& index, const std::filesystem::path& folder);
/// Throws Error(data) naming the file for anything that write_record_index would not write, and for
/// a file that a manifest.sha256 beside it lists with another sum.
RecordIndex read_record_index(const std::filesystem::path& folder);

/// Throws Error(data) for a file of samples whose name the index cannot hold: hidden, or not UTF-8.
void require_source_name(const std::filesystem::path& file);

}  // namespace hpcai::data
