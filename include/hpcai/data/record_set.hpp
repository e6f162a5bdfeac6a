// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <hpcai/data/box.hpp>
#include <hpcai/data/record_source.hpp>
#include <hpcai/tensor/dtype.hpp>

namespace hpcai::data {

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

    std::int64_t samples() const;
    int height() const;
    int width() const;
    int channels() const;
    tensor::DType dtype() const;       // f32, f16 or bf16
    std::size_t record_bytes() const;  // height * width * channels elements
    const std::vector<std::string>& channel_names() const;
    /// Of the channels in physical units: a record holds (x - mean) / standard_deviation.
    const std::vector<double>& mean() const;
    const std::vector<double>& standard_deviation() const;
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
    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace hpcai::data
