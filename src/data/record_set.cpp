// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <limits>

#include <nlohmann/json.hpp>
#include <sys/mman.h>
#include <sys/stat.h>
#include <zlib.h>

#include <hpcai/base/text.hpp>
#include <hpcai/data/record_set.hpp>
#include <hpcai/storage/file.hpp>
#include <hpcai/storage/manifest.hpp>
#include <hpcai/storage/strict_json.hpp>

#include "field_numbers.hpp"

namespace hpcai::data {
namespace {

/// Maps a regular file of `bytes` >= 1 bytes into memory. Throws Error(data) naming the path if it
/// has another size or cannot be mapped.
std::shared_ptr<const std::byte> map_file(const std::filesystem::path& path, std::size_t bytes) {
    const storage::Descriptor file = storage::open_for_reading(path);
    struct stat status {};
    ensure(::fstat(file.number(), &status) == 0, "fstat of '{}' failed", path.string());
    require(static_cast<std::size_t>(status.st_size) == bytes, ExitCode::data,
            "'{}' has {} bytes, expected {}", path.string(), status.st_size, bytes);
    void* const memory = ::mmap(nullptr, bytes, PROT_READ, MAP_SHARED, file.number(), 0);
    require(memory != MAP_FAILED, ExitCode::data, "cannot map '{}': {}", path.string(),
            std::strerror(errno));
    return {static_cast<const std::byte*>(memory),
            [memory, bytes](const std::byte*) { ::munmap(memory, bytes); }};
}

using nlohmann::json;

constexpr const char* kRecordsSchema = "hpcai500-records-1";
constexpr std::array kDTypes{tensor::DType::f32, tensor::DType::f16, tensor::DType::bf16};
constexpr std::size_t kMaxIndexBytes = std::size_t{1} << 30;  // hostile files must not fill memory
constexpr int kMaxRecordSide = 16'384;                        // pixels
constexpr std::size_t kMaxChannels = 1024;
constexpr std::int32_t kMaxCategories = 1'000'000;
constexpr std::size_t kMaxGeneratorBytes = 256;

/// Parses the index, or throws Error(data) naming file and key.
class IndexReader {
public:
    explicit IndexReader(const std::filesystem::path& path) : path_(path.string()) {}

    RecordIndex read(const json& document) {
        check(document.is_object() && document.value("schema", json()) == kRecordsSchema, "schema");
        RecordIndex index;
        index.dtype = dtype(get<std::string>(document, "dtype"));
        index.height = static_cast<int>(integer(document, "height", 1, kMaxRecordSide));
        index.width = static_cast<int>(integer(document, "width", 1, kMaxRecordSide));
        index.channels = get<std::vector<std::string>>(document, "channels");
        check(!index.channels.empty() && index.channels.size() <= kMaxChannels, "channels");
        index.statistics.mean = get<std::vector<double>>(document, "mean");
        check(index.statistics.mean.size() == index.channels.size(), "mean");
        std::vector<double>& deviations = index.statistics.standard_deviation;
        deviations = get<std::vector<double>>(document, "standard_deviation");
        check(deviations.size() == index.channels.size() && std::ranges::min(deviations) > 0,
              "standard_deviation");
        for (const json& file : array(document, "files"))
            index.files.push_back(read_file(file, index));
        check(!index.files.empty(), "files");
        return index;
    }

private:
    [[noreturn]] void fail(const char* key) const {
        throw Error(
            ExitCode::data,
            fmt::format("'{}': the value of {} is not as `data transcode` writes it", path_, key));
    }
    void check(bool condition, const char* key) const {
        if (!condition) fail(key);
    }
    template <typename T>
    T get(const json& object, const char* key) const {
        try {
            return object.at(key).get<T>();
        } catch (const json::exception&) {
            fail(key);
        }
    }
    const json& array(const json& object, const char* key) const {
        check(object.is_object() && object.contains(key) && object[key].is_array(), key);
        return object[key];
    }
    std::int64_t integer(const json& object, const char* key, std::int64_t low,
                         std::int64_t high) const {
        const json value = get<json>(object, key);
        check(value.is_number_integer() && value >= low && value <= high, key);
        return value.get<std::int64_t>();
    }
    tensor::DType dtype(const std::string& name) const {
        for (const tensor::DType dtype : kDTypes) {
            if (name == tensor::name_of(dtype)) return dtype;
        }
        fail("dtype");
    }
    /// Reads a file name that cannot leave the folder.
    std::string file_name(const json& object, const char* key) const {
        std::string name = get<std::string>(object, key);
        check(!name.empty() && name[0] != '.' &&
                  name.find_first_of(std::string_view("/\0", 2)) == std::string::npos,
              key);
        return name;
    }
    IndexedFile read_file(const json& object, const RecordIndex& index) const {
        IndexedFile file{file_name(object, "name"), file_name(object, "source")};
        if (object.contains("generator")) file.generator = get<std::string>(object, "generator");
        check(file.generator.size() <= kMaxGeneratorBytes, "generator");
        for (const json& record : array(object, "records")) {
            file.records.push_back(
                {integer(record, "number", 0, std::numeric_limits<std::int32_t>::max()),
                 checksum(get<std::string>(record, "crc32")), read_boxes(record, index)});
        }
        check(!file.records.empty(), "records");
        return file;
    }
    std::uint32_t checksum(const std::string& text) const {
        std::uint32_t number = 0;
        const char* const end = text.data() + text.size();
        const auto [rest, error] = std::from_chars(text.data(), end, number, 16);
        check(text.size() == 8 && error == std::errc{} && rest == end, "crc32");
        return number;
    }
    std::vector<Box> read_boxes(const json& record, const RecordIndex& index) const {
        std::vector<Box> boxes;
        for (const json& row : array(record, "boxes")) {
            check(row.is_array() && row.size() == 5 && row[4].is_number_integer(), "boxes");
            check(row[4] >= 1 && row[4] <= kMaxCategories, "boxes");
            for (const json& edge : row) check(edge.is_number(), "boxes");
            const Box box{row[0].get<float>(), row[1].get<float>(), row[2].get<float>(),
                          row[3].get<float>(), row[4].get<std::int32_t>()};
            check(box.x1 >= 0 && box.x1 < box.x2 && box.x2 <= static_cast<float>(index.width),
                  "boxes");
            check(box.y1 >= 0 && box.y1 < box.y2 && box.y2 <= static_cast<float>(index.height),
                  "boxes");
            boxes.push_back(box);
        }
        return boxes;
    }

    std::string path_;
};

}  // namespace

struct RecordSet::Contents {
    std::vector<std::shared_ptr<const std::byte>> files;  // mapped into memory
    std::vector<std::atomic<bool>> checked;               // by sample; whether its checksum matched
};

RecordSet::RecordSet(const std::filesystem::path& folder)
    : folder_(folder), index_(read_record_index(folder)), contents_(std::make_shared<Contents>()) {
    for (const IndexedFile& file : index_.files) {
        contents_->files.push_back(
            map_file(folder / file.name, file.records.size() * record_bytes()));
        first_samples_.push_back(first_samples_.back() + std::ssize(file.records));
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
    const std::byte* const file = contents_->files[position.file].get();
    const std::span bytes(file + position.record * record_bytes(), record_bytes());
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

std::size_t RecordIndex::record_bytes() const {
    return channels.size() * height * width * tensor::size_of(dtype);
}

std::uint32_t checksum_of(std::span<const std::byte> bytes, std::uint32_t before) {
    return static_cast<std::uint32_t>(
        ::crc32_z(before, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

void write_record_index(const RecordIndex& index, const std::filesystem::path& folder) {
    json document{{"schema", kRecordsSchema},
                  {"dtype", tensor::name_of(index.dtype)},
                  {"height", index.height},
                  {"width", index.width},
                  {"channels", index.channels},
                  {"mean", index.statistics.mean},
                  {"standard_deviation", index.statistics.standard_deviation},
                  {"files", json::array()}};
    for (const IndexedFile& file : index.files) {
        json records = json::array();
        for (const IndexedRecord& record : file.records) {
            json boxes = json::array();
            for (const Box& box : record.boxes) {
                boxes.push_back({box.x1, box.y1, box.x2, box.y2, box.category});
            }
            records.push_back({{"number", record.number},
                               {"crc32", fmt::format("{:08x}", record.checksum)},
                               {"boxes", std::move(boxes)}});
        }
        json& row = document["files"].emplace_back(
            json{{"name", file.name}, {"source", file.source}, {"records", std::move(records)}});
        if (!file.generator.empty()) row["generator"] = file.generator;
    }
    storage::write_file_durably(folder / kRecordIndexName, document.dump() + "\n");
}

RecordIndex read_record_index(const std::filesystem::path& folder) {
    const std::filesystem::path path = folder / kRecordIndexName;
    storage::matches_manifest(path);
    const std::string text = storage::read_file_text(path, kMaxIndexBytes);
    return IndexReader(path).read(storage::parse_strict_json(text, path.string()));
}

void require_source_name(const std::filesystem::path& file) {
    const std::string name = file.filename().string();
    require(!name.empty() && name[0] != '.', ExitCode::data,
            "'{}': a file whose name begins with a dot cannot be transcoded", file.string());
    require(printable(name) == name, ExitCode::data,
            "'{}': expected a name in UTF-8 without control characters", printable(file.string()));
}

}  // namespace hpcai::data
