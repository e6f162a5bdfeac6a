// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <bit>
#include <set>

#include <hpcai/storage/safetensors.hpp>
#include <hpcai/storage/strict_json.hpp>

namespace hpcai::storage {
namespace {

using nlohmann::json;

static_assert(std::endian::native == std::endian::little, "elements are stored as in memory");

constexpr std::size_t kLengthBytes = 8;
constexpr std::uint64_t kMaxHeaderBytes = 100'000'000;  // the reference reader's limit
constexpr const char* kMetadataKey = "__metadata__";

struct TypeRow {
    ElementType type;
    std::string_view name;
    std::size_t bytes;
};

constexpr std::array kTypes{
    TypeRow{ElementType::boolean, "BOOL", 1},    TypeRow{ElementType::u8, "U8", 1},
    TypeRow{ElementType::i8, "I8", 1},           TypeRow{ElementType::f8_e4m3, "F8_E4M3", 1},
    TypeRow{ElementType::f8_e5m2, "F8_E5M2", 1}, TypeRow{ElementType::u16, "U16", 2},
    TypeRow{ElementType::i16, "I16", 2},         TypeRow{ElementType::f16, "F16", 2},
    TypeRow{ElementType::bf16, "BF16", 2},       TypeRow{ElementType::u32, "U32", 4},
    TypeRow{ElementType::i32, "I32", 4},         TypeRow{ElementType::f32, "F32", 4},
    TypeRow{ElementType::u64, "U64", 8},         TypeRow{ElementType::i64, "I64", 8},
    TypeRow{ElementType::f64, "F64", 8}};

const TypeRow& row_of(ElementType type) {
    const auto* row = std::ranges::find(kTypes, type, &TypeRow::type);
    ensure(row != kTypes.end(), "element type {} is not in the table", static_cast<int>(type));
    return *row;
}

/// Computes a tensor's size in bytes. Returns false for an overflow or a negative extent.
bool compute_bytes(const std::vector<std::int64_t>& shape, ElementType type, std::uint64_t& bytes) {
    bytes = size_of(type);
    for (const std::int64_t extent : shape) {
        if (extent < 0) return false;
        if (__builtin_mul_overflow(bytes, static_cast<std::uint64_t>(extent), &bytes)) return false;
    }
    return true;
}

/// Parses the JSON header.
class HeaderReader {
public:
    HeaderReader(std::string_view file_name, Bytes elements)
        : file_name_(file_name), elements_(elements) {}

    void read(std::string_view text, Metadata& metadata, std::vector<StoredTensor>& tensors) {
        require(text.starts_with('{'), ExitCode::data,
                "'{}' is not a safetensors file: its header does not begin with '{{'", file_name_);
        const json header = parse_strict_json(text, file_name_, {.depth = 3});
        for (const auto& [name, value] : header.items()) {
            if (name == kMetadataKey) {
                read_metadata(value, metadata);
            } else {
                read_entry(name, value);
            }
        }
        std::ranges::sort(entries_, {}, [](const Entry& entry) {
            return std::tuple(entry.begin, entry.end, entry.tensor.name);
        });
        append_tensors(tensors);
    }

private:
    struct Entry {
        StoredTensor tensor;
        std::uint64_t begin = 0;
        std::uint64_t end = 0;
    };

    void check(bool condition, const std::string& name, std::string_view problem) const {
        require(condition, ExitCode::data, "'{}': tensor '{}': {}", file_name_, name, problem);
    }

    void read_metadata(const json& object, Metadata& metadata) const {
        require(object.is_object(), ExitCode::data, "'{}': `__metadata__` is not an object",
                file_name_);
        for (const auto& [key, value] : object.items()) {
            require(value.is_string(), ExitCode::data,
                    "'{}': a value in `__metadata__` is not a string", file_name_);
            metadata[key] = value.get<std::string>();
        }
    }

    void read_entry(const std::string& name, const json& object) {
        check(object.is_object() && object.size() == 3 && object.contains("dtype") &&
                  object.contains("shape") && object.contains("data_offsets"),
              name, "not an object of exactly 'dtype', 'shape' and 'data_offsets'");
        Entry entry;
        entry.tensor.name = name;
        entry.tensor.type = read_type(name, object["dtype"]);
        for (const std::uint64_t extent : read_numbers(name, object["shape"])) {
            check(extent <= std::numeric_limits<std::int64_t>::max(), name, "'shape' is too big");
            entry.tensor.shape.push_back(static_cast<std::int64_t>(extent));
        }
        const std::vector<std::uint64_t> offsets = read_numbers(name, object["data_offsets"]);
        check(offsets.size() == 2, name, "'data_offsets' are not two numbers");
        entry.begin = offsets[0];
        entry.end = offsets[1];
        entries_.push_back(std::move(entry));
    }

    ElementType read_type(const std::string& name, const json& dtype) const {
        check(dtype.is_string(), name, "'dtype' is not a string");
        const auto* row =
            std::ranges::find(kTypes, dtype.get_ref<const std::string&>(), &TypeRow::name);
        check(row != kTypes.end(), name, fmt::format("'dtype' is unknown: {}", dtype.dump()));
        return row->type;
    }

    std::vector<std::uint64_t> read_numbers(const std::string& name, const json& array) const {
        check(array.is_array(), name, "'shape' or 'data_offsets' is not a list");
        std::vector<std::uint64_t> numbers;
        for (const json& value : array) {
            check(value.is_number_unsigned(), name,
                  "'shape' or 'data_offsets' contains a value other than an integer of 0 or more");
            numbers.push_back(value.get<std::uint64_t>());
        }
        return numbers;
    }

    /// Checks that the sorted entries cover the data exactly, then appends their tensors.
    void append_tensors(std::vector<StoredTensor>& tensors) {
        std::uint64_t position = 0;
        for (Entry& entry : entries_) {
            const std::string& name = entry.tensor.name;
            check(entry.begin == position && entry.end >= entry.begin, name,
                  "'data_offsets' leave a gap, overlap or run backwards");
            std::uint64_t expected = 0;
            check(compute_bytes(entry.tensor.shape, entry.tensor.type, expected), name,
                  "the size of 'shape' in bytes exceeds 64 bits");
            check(entry.end - entry.begin == expected, name,
                  "'data_offsets' do not fit 'shape' and 'dtype'");
            check(entry.end <= elements_.size(), name, "'data_offsets' exceed the end of the file");
            entry.tensor.bytes = elements_.subspan(entry.begin, expected);
            position = entry.end;
            tensors.push_back(std::move(entry.tensor));
        }
        require(position == elements_.size(), ExitCode::data,
                "'{}' has {} bytes of elements; its header describes {}", file_name_,
                elements_.size(), position);
    }

    std::string_view file_name_;
    Bytes elements_;
    std::vector<Entry> entries_;
};

std::string header_of(const std::vector<const StoredTensor*>& tensors, const Metadata& metadata) {
    nlohmann::ordered_json header = nlohmann::ordered_json::object();
    if (!metadata.empty()) header[kMetadataKey] = metadata;
    std::uint64_t position = 0;
    std::set<std::string_view> names;
    for (const StoredTensor* tensor : tensors) {
        std::uint64_t bytes = 0;
        ensure(compute_bytes(tensor->shape, tensor->type, bytes) && bytes == tensor->bytes.size(),
               "tensor '{}' has {} bytes that do not fit its shape", tensor->name,
               tensor->bytes.size());
        ensure(tensor->name != kMetadataKey && names.insert(tensor->name).second,
               "tensor name '{}' is duplicated or reserved", tensor->name);
        header[tensor->name] = {{"dtype", row_of(tensor->type).name},
                                {"shape", tensor->shape},
                                {"data_offsets", {position, position + bytes}}};
        position += bytes;
    }
    std::string text = header.dump();
    text.append((8 - text.size() % 8) % 8, ' ');  // elements begin at a multiple of 8 bytes
    return text;
}

}  // namespace

std::size_t size_of(ElementType type) {
    return row_of(type).bytes;
}

void write_safetensors(const fs::path& path, std::span<const StoredTensor> tensors,
                       const Metadata& metadata) {
    std::vector<const StoredTensor*> ordered;
    for (const StoredTensor& tensor : tensors) ordered.push_back(&tensor);
    std::ranges::sort(ordered, [](const StoredTensor* left, const StoredTensor* right) {
        const std::size_t left_bytes = size_of(left->type);
        const std::size_t right_bytes = size_of(right->type);
        return left_bytes != right_bytes ? left_bytes > right_bytes : left->name < right->name;
    });
    const std::string header = header_of(ordered, metadata);
    const std::uint64_t length = header.size();
    std::vector<Bytes> parts{std::as_bytes(std::span(&length, 1)), bytes_of(header)};
    for (const StoredTensor* tensor : ordered) parts.push_back(tensor->bytes);
    write_file_durably(path, parts);
}

SafetensorsFile::SafetensorsFile(std::vector<std::byte> bytes, std::string_view name)
    : bytes_(std::move(bytes)) {
    require(bytes_.size() >= kLengthBytes, ExitCode::data,
            "'{}' is not a safetensors file: it has only {} bytes", name, bytes_.size());
    std::uint64_t header_bytes = 0;
    std::memcpy(&header_bytes, bytes_.data(), kLengthBytes);
    require(header_bytes <= kMaxHeaderBytes, ExitCode::data,
            "'{}' is not a safetensors file: its header has {} bytes, more than {}", name,
            header_bytes, kMaxHeaderBytes);
    const Bytes rest = Bytes(bytes_).subspan(kLengthBytes);
    require(header_bytes <= rest.size(), ExitCode::data, "'{}' ends within its safetensors header",
            name);
    HeaderReader(name, rest.subspan(header_bytes))
        .read(text_of(rest.first(header_bytes)), metadata_, tensors_);
    for (const StoredTensor& tensor : tensors_) by_name_.emplace(tensor.name, &tensor);
}

const StoredTensor* SafetensorsFile::find(std::string_view name) const {
    const auto found = by_name_.find(name);
    return found == by_name_.end() ? nullptr : found->second;
}

SafetensorsFile read_safetensors(const fs::path& path, std::size_t limit_bytes) {
    return {read_file_bytes(path, limit_bytes), path.string()};
}

}  // namespace hpcai::storage
