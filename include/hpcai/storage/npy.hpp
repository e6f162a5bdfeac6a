// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <hpcai/storage/file.hpp>
#include <hpcai/tensor/tensor_view.hpp>

/// NumPy's .npy format, version 1.0 (numpy.lib.format), restricted to what the benchmark stores:
/// little-endian float32 ('<f4') and int32 ('<i4'), one or two dimensions, C order.
namespace hpcai::storage {

class NpyArray {
public:
    NpyArray(tensor::Shape shape, tensor::DType dtype, std::vector<std::byte> elements)
        : shape_(shape), dtype_(dtype), elements_(std::move(elements)) {}

    const tensor::Shape& shape() const noexcept { return shape_; }
    tensor::DType dtype() const noexcept { return dtype_; }
    /// Returns the elements in C order, valid as long as this object. Throws Error(internal) if T
    /// is not the array's type.
    template <typename T>
    std::span<const T> as() const {
        ensure(dtype_ == tensor::dtype_of<T>(), "an npy array of {} was read as another type",
               tensor::name_of(dtype_));
        return {reinterpret_cast<const T*>(elements_.data()), elements_.size() / sizeof(T)};
    }

private:
    tensor::Shape shape_;
    tensor::DType dtype_;
    std::vector<std::byte> elements_;
};

/// Write `values` of `shape` (one or two dimensions) durably. Throw as write_file_durably, and
/// Error(internal) for another number of dimensions or a shape that does not fit `values`.
void write_npy(const fs::path& path, std::span<const float> values, const tensor::Shape& shape);
void write_npy(const fs::path& path, std::span<const std::int32_t> values,
               const tensor::Shape& shape);

/// Parses the array in `bytes`; `name` is for messages. Throws Error(data) for an unsupported
/// format (see above), a header of more than 512 bytes not counting its padding, more than 2^48
/// elements, and missing or extra bytes.
NpyArray parse_npy(Bytes bytes, std::string_view name);

/// Parses a file. Throws Error(data) as parse_npy and read_file_bytes do.
NpyArray read_npy(const fs::path& path);

}  // namespace hpcai::storage
