// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <memory>
#include <span>

#include <hpcai/data/climate_channels.hpp>
#include <hpcai/data/image.hpp>
#include <hpcai/tensor/dtype.hpp>

namespace hpcai::data {

inline constexpr const char* kRecordIndexName = "records.json";

struct IndexedRecord {
    std::int64_t number = 0;     // of the sample in its source file
    std::uint32_t checksum = 0;  // CRC-32 of the record, as in zlib
    std::vector<Box> boxes;
};

struct IndexedFile {
    std::string name;            // of the record file
    std::string source;          // name of the HDF5 file that had the samples
    std::string generator = {};  // ClimateFile::generator() of the HDF5 file
    std::vector<IndexedRecord> records;
};

/// The contents of records.json.
struct RecordIndex {
    tensor::DType dtype = tensor::DType::f16;
    int height = 0;
    int width = 0;
    std::vector<std::string> channels;
    ChannelStatistics statistics;
    std::vector<IndexedFile> files;

    std::size_t record_bytes() const;
};

/// Returns the CRC-32 of earlier bytes, whose CRC-32 is `before`, followed by `bytes`.
std::uint32_t checksum_of(std::span<const std::byte> bytes, std::uint32_t before = 0);

/// Durably writes records.json in `folder`. Throws Error(usage) if it cannot be written.
void write_record_index(const RecordIndex& index, const std::filesystem::path& folder);
/// Reads records.json in `folder`. Throws Error(data) naming the file if it is invalid or its
/// SHA-256 differs from that in a manifest.sha256 in the folder.
RecordIndex read_record_index(const std::filesystem::path& folder);

/// Throws Error(data) if a source file is hidden, or its name is not UTF-8 or has control
/// characters.
void require_source_name(const std::filesystem::path& file);

/// An HDF5 file from which a data set was read or transcoded.
struct RecordSource {
    std::string name;
    std::string generator;          // ClimateFile::generator()
    std::uint32_t fingerprint = 0;  // ClimateFile::fingerprint(), or CRC-32 of records' checksums
};

/// Normalized samples that `data transcode` has written: a folder with records.json (shapes,
/// statistics, boxes and checksums) and flat files of records, one per sample. The files are
/// memory-mapped. Thread-safe.
class RecordSet {
public:
    /// Reads the index, but no record. Throws Error(data) naming the file for an invalid index or a
    /// record file that is missing or has the wrong size.
    explicit RecordSet(const std::filesystem::path& folder);

    std::int64_t samples() const { return first_samples_.back(); }
    int height() const { return index_.height; }
    int width() const { return index_.width; }
    int channels() const { return static_cast<int>(index_.channels.size()); }
    tensor::DType dtype() const { return index_.dtype; }  // f32, f16 or bf16
    /// Returns the bytes of height * width * channels elements.
    std::size_t record_bytes() const { return index_.record_bytes(); }
    const std::vector<std::string>& channel_names() const { return index_.channels; }
    /// Returns the statistics of the channels in physical units. The values of a record are
    /// (x - mean) / standard_deviation.
    const ChannelStatistics& statistics() const { return index_.statistics; }
    /// Returns the source file of the sample and its number there, as in "climo_1984.h5/17".
    std::string name(std::int64_t sample) const;

    /// Returns the bytes of the sample, (height, width, channels) of dtype(), valid as long as this
    /// object. Verifies the checksum of a sample until it has matched once. Throws Error(data)
    /// naming file and sample if it differs.
    std::span<const std::byte> record(std::int64_t sample) const;
    /// Returns whether all values of the record are finite. Throws like record().
    bool is_finite(std::int64_t sample) const;
    const std::vector<Box>& boxes(std::int64_t sample) const;
    std::vector<RecordSource> sources() const;

private:
    struct Position {
        std::size_t file, record;
    };
    struct Contents;

    Position locate(std::int64_t sample) const;
    const IndexedRecord& record_at(const Position& position) const {
        return index_.files[position.file].records[position.record];
    }

    std::filesystem::path folder_;
    RecordIndex index_;
    std::vector<std::int64_t> first_samples_{0};  // of each file, then the number of samples
    std::shared_ptr<Contents> contents_;          // shared by the copies of this object
};

}  // namespace hpcai::data
