// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <utility>

#include <sys/mman.h>
#include <sys/stat.h>

#include <hpcai/base/error.hpp>
#include <hpcai/data/record_set.hpp>
#include <hpcai/storage/descriptor.hpp>

#include "field_numbers.hpp"

namespace hpcai::data {
namespace {

/// A memory-mapped regular file.
class MappedFile {
public:
    /// Maps a file of `bytes` >= 1 bytes. Throws Error(data) naming the path if it has another size
    /// or cannot be mapped.
    MappedFile(const std::filesystem::path& path, std::size_t bytes) {
        const storage::Descriptor file = storage::open_for_reading(path);
        struct stat status {};
        ensure(::fstat(file.number(), &status) == 0, "fstat of '{}'", path.string());
        require(static_cast<std::size_t>(status.st_size) == bytes, ExitCode::data,
                "'{}' has {} bytes, expected {}", path.string(), status.st_size, bytes);
        void* const memory = ::mmap(nullptr, bytes, PROT_READ, MAP_SHARED, file.number(), 0);
        require(memory != MAP_FAILED, ExitCode::data, "cannot map '{}': {}", path.string(),
                std::strerror(errno));
        bytes_ = {static_cast<const std::byte*>(memory), bytes};
    }
    MappedFile(MappedFile&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}
    MappedFile& operator=(MappedFile&&) = delete;
    ~MappedFile() {
        if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
    }

    std::span<const std::byte> bytes() const { return bytes_; }

private:
    std::span<const std::byte> bytes_;
};

}  // namespace

struct RecordSet::Contents {
    std::vector<MappedFile> files;
    std::vector<std::atomic<bool>> checked;  // by sample
};

RecordSet::RecordSet(const std::filesystem::path& folder)
    : folder_(folder), index_(read_record_index(folder)), contents_(std::make_shared<Contents>()) {
    for (const IndexedFile& file : index_.files) {
        contents_->files.emplace_back(folder / file.name, file.records.size() * record_bytes());
        first_samples_.push_back(first_samples_.back() +
                                 static_cast<std::int64_t>(file.records.size()));
    }
    contents_->checked = std::vector<std::atomic<bool>>(first_samples_.back());
}

RecordSet::Position RecordSet::locate(std::int64_t sample) const {
    ensure(sample >= 0 && sample < samples(), "record {} of {}", sample, samples());
    const auto after = std::upper_bound(first_samples_.begin(), first_samples_.end(), sample);
    const auto file = static_cast<std::size_t>(after - first_samples_.begin() - 1);
    return {file, static_cast<std::size_t>(sample - first_samples_[file])};
}

std::string RecordSet::name(std::int64_t sample) const {
    const Position position = locate(sample);
    return fmt::format("{}/{}", index_.files[position.file].source, record_at(position).number);
}

std::span<const std::byte> RecordSet::record(std::int64_t sample) const {
    const Position position = locate(sample);
    const auto bytes = contents_->files[position.file].bytes().subspan(
        position.record * record_bytes(), record_bytes());
    std::atomic<bool>& checked = contents_->checked[sample];
    if (checked.load(std::memory_order_relaxed)) return bytes;
    require(checksum_of(bytes) == record_at(position).checksum, ExitCode::data,
            "'{}': record {} ({}) is damaged: its checksum differs",
            (folder_ / index_.files[position.file].name).string(), position.record, name(sample));
    checked.store(true, std::memory_order_relaxed);
    return bytes;
}

bool RecordSet::is_finite(std::int64_t sample) const {
    return all_finite(record(sample), dtype());
}

std::vector<RecordSource> RecordSet::sources() const {
    std::vector<RecordSource> sources;
    for (const IndexedFile& file : index_.files) {
        std::vector<std::uint32_t> checksums;
        for (const IndexedRecord& record : file.records) checksums.push_back(record.checksum);
        sources.push_back(
            {file.source, file.generator, checksum_of(std::as_bytes(std::span(checksums)))});
    }
    return sources;
}

const std::vector<Box>& RecordSet::boxes(std::int64_t sample) const {
    return record_at(locate(sample)).boxes;
}

}  // namespace hpcai::data
