// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <atomic>

#include <hpcai/base/error.hpp>
#include <hpcai/data/record_set.hpp>

#include "climate_set.hpp"
#include "mapped_file.hpp"
#include "record_index.hpp"

namespace hpcai::data {

struct RecordSet::State {
    std::filesystem::path folder;
    RecordIndex index;
    std::vector<MappedFile> files;
    std::vector<std::int64_t> first;  // sample of each file, and the number of all
    std::vector<std::atomic<bool>> checked;

    struct Place {
        std::size_t file, record;
    };
    Place place_of(std::int64_t sample) const {
        ensure(sample >= 0 && sample < first.back(), "record {} of {}", sample, first.back());
        const auto after = std::upper_bound(first.begin(), first.end(), sample);
        const auto file = static_cast<std::size_t>(after - first.begin() - 1);
        return {file, static_cast<std::size_t>(sample - first[file])};
    }
    const IndexedRecord& record_at(const Place& place) const {
        return index.files[place.file].records[place.record];
    }
};

RecordSet::RecordSet(const std::filesystem::path& folder) : state_(std::make_unique<State>()) {
    State& s = *state_;
    s.folder = folder;
    s.index = read_record_index(folder);
    s.first.push_back(0);
    for (const IndexedFile& file : s.index.files) {
        s.files.emplace_back(folder / file.name, file.records.size() * record_bytes());
        s.first.push_back(s.first.back() + static_cast<std::int64_t>(file.records.size()));
    }
    s.checked = std::vector<std::atomic<bool>>(static_cast<std::size_t>(s.first.back()));
}

RecordSet::~RecordSet() = default;
RecordSet::RecordSet(RecordSet&&) noexcept = default;
RecordSet& RecordSet::operator=(RecordSet&&) noexcept = default;

std::int64_t RecordSet::samples() const {
    return state_->first.back();
}
int RecordSet::height() const {
    return state_->index.height;
}
int RecordSet::width() const {
    return state_->index.width;
}
int RecordSet::channels() const {
    return static_cast<int>(state_->index.channels.size());
}
tensor::DType RecordSet::dtype() const {
    return state_->index.dtype;
}
std::size_t RecordSet::record_bytes() const {
    return state_->index.record_bytes();
}
const std::vector<std::string>& RecordSet::channel_names() const {
    return state_->index.channels;
}
const std::vector<double>& RecordSet::mean() const {
    return state_->index.mean;
}
const std::vector<double>& RecordSet::standard_deviation() const {
    return state_->index.standard_deviation;
}

std::string RecordSet::name(std::int64_t sample) const {
    const State::Place place = state_->place_of(sample);
    return fmt::format("{}/{}", state_->index.files[place.file].source,
                       state_->record_at(place).number);
}

std::span<const std::byte> RecordSet::record(std::int64_t sample) const {
    State& s = *state_;
    const State::Place place = s.place_of(sample);
    const auto bytes =
        s.files[place.file].bytes().subspan(place.record * record_bytes(), record_bytes());
    std::atomic<bool>& checked = s.checked[sample];
    if (checked.load(std::memory_order_relaxed)) return bytes;
    const IndexedFile& file = s.index.files[place.file];
    require(checksum_of(bytes) == s.record_at(place).checksum, ExitCode::data,
            "'{}': record {} ({}) is damaged: its checksum differs",
            (s.folder / file.name).string(), place.record, name(sample));
    checked.store(true, std::memory_order_relaxed);
    return bytes;
}

bool RecordSet::is_finite(std::int64_t sample) const {
    return all_finite(record(sample), dtype());
}

std::vector<RecordSource> RecordSet::sources() const {
    std::vector<RecordSource> sources;
    for (const IndexedFile& file : state_->index.files) {
        std::vector<std::uint32_t> checksums;
        for (const IndexedRecord& record : file.records) checksums.push_back(record.checksum);
        sources.push_back(
            {file.source, file.generator, checksum_of(std::as_bytes(std::span(checksums)))});
    }
    return sources;
}

const std::vector<Box>& RecordSet::boxes(std::int64_t sample) const {
    return state_->record_at(state_->place_of(sample)).boxes;
}

}  // namespace hpcai::data
