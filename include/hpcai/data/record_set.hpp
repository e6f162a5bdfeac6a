// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <hpcai/data/record_index.hpp>

namespace hpcai::data {

/// One file that records were made of.
struct RecordSource {
    std::string name;
    std::string generator;          // ClimateFile::generator()
    std::uint32_t fingerprint = 0;  // CRC-32 of the checksums of its records
};

/// Normalized samples as `data transcode` writes them: a folder with records.json, which has
/// shapes, statistics, boxes and checksums, and flat files of one record a sample after another.
/// The files are mapped, not read. Safe to use from many threads.
class RecordSet {
public:
    /// Throws Error(data) naming the file for an index that is not sound or a record file that is
    /// missing or has another size; records themselves are not looked at.
    explicit RecordSet(const std::filesystem::path& folder);
    ~RecordSet();
    RecordSet(RecordSet&&) noexcept;
    RecordSet& operator=(RecordSet&&) noexcept;

    std::int64_t samples() const { return first_.back(); }
    int height() const { return index_.height; }
    int width() const { return index_.width; }
    int channels() const { return static_cast<int>(index_.channels.size()); }
    tensor::DType dtype() const { return index_.dtype; }  // f32, f16 or bf16
    /// Bytes of height * width * channels elements.
    std::size_t record_bytes() const { return index_.record_bytes(); }
    const std::vector<std::string>& channel_names() const { return index_.channels; }
    /// Statistics of the channels in physical units: a record holds (x - mean) /
    /// standard_deviation.
    const ChannelStatistics& statistics() const { return index_.statistics; }
    /// "climo_1984.h5/17": the file that the sample came from, and its number there.
    std::string name(std::int64_t sample) const;

    /// Bytes of the sample, (height, width, channels) of dtype(), valid as long as this object.
    /// The first call for a sample compares its checksum; throws Error(data) naming file and
    /// sample where it differs.
    std::span<const std::byte> record(std::int64_t sample) const;
    /// Whether all numbers of the record are finite; throws as record().
    bool is_finite(std::int64_t sample) const;
    const std::vector<Box>& boxes(std::int64_t sample) const;
    std::vector<RecordSource> sources() const;

private:
    struct Place {
        std::size_t file, record;
    };
    struct Contents;

    Place place_of(std::int64_t sample) const;
    const IndexedRecord& record_at(const Place& place) const {
        return index_.files[place.file].records[place.record];
    }

    std::filesystem::path folder_;
    RecordIndex index_;
    std::vector<std::int64_t> first_{0};  // sample of each file, and the number of all
    std::unique_ptr<Contents> contents_;
};

}  // namespace hpcai::data
