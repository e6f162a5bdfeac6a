// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>
#include <map>

#include <hpcai/storage/file.hpp>

/// The safetensors format: the header's length (64 bits, little endian), a JSON header, the
/// elements. Reading checks all rules of github.com/huggingface/safetensors (README, section
/// "Format", and `Metadata::validate`).
namespace hpcai::storage {

enum class ElementType : std::uint8_t {
    boolean,
    u8,
    i8,
    f8_e4m3,
    f8_e5m2,
    u16,
    i16,
    f16,
    bf16,
    u32,
    i32,
    f32,
    u64,
    i64,
    f64
};

/// Returns the bytes of one element.
std::size_t size_of(ElementType type);

/// A tensor of a file. `bytes` is a view of its elements as stored, in C order, little endian, and
/// may have any alignment.
struct StoredTensor {
    std::string name;
    ElementType type = ElementType::f32;
    std::vector<std::int64_t> shape;  // empty: a scalar
    Bytes bytes;
};

using Metadata = std::map<std::string, std::string>;

/// Writes the tensors durably, sorted by descending element size, then by name, so that each begins
/// at a multiple of its element size. Throws as write_file_durably, and Error(internal) for a
/// duplicate name, the name "__metadata__", or a shape that does not fit the tensor's bytes.
void write_safetensors(const fs::path& path, std::span<const StoredTensor> tensors,
                       const Metadata& metadata = {});

/// A validated file in memory.
class SafetensorsFile {
public:
    /// `name` is for messages. Throws Error(data) if the header has over 100,000,000 bytes, exceeds
    /// the file, does not begin with '{', or is rejected by parse_strict_json. Also throws for a
    /// missing or unknown key of a tensor, metadata that are not strings, and an unknown type. The
    /// tensors' offsets must fit shape and type and cover the rest of the file without gap or
    /// overlap.
    SafetensorsFile(std::vector<std::byte> bytes, std::string_view name);
    SafetensorsFile(SafetensorsFile&&) noexcept = default;
    SafetensorsFile& operator=(SafetensorsFile&&) noexcept = default;

    const Metadata& metadata() const noexcept { return metadata_; }
    /// Returns the tensors in the order of their data in the file, valid as long as this object.
    const std::vector<StoredTensor>& tensors() const noexcept { return tensors_; }
    /// Returns the tensor with that name, or null.
    const StoredTensor* find(std::string_view name) const;

private:
    std::vector<std::byte> bytes_;
    Metadata metadata_;
    std::vector<StoredTensor> tensors_;
    std::map<std::string_view, const StoredTensor*> by_name_;  // pointers into tensors_
};

/// Reads a file of at most `limit_bytes` bytes. Throws Error(data) as the constructor and
/// read_file_bytes do.
SafetensorsFile read_safetensors(const fs::path& path,
                                 std::size_t limit_bytes = std::numeric_limits<std::size_t>::max());

}  // namespace hpcai::storage
