// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include <hpcai/tensor/dtype.hpp>

#include "stream.hpp"

/// Conversions between fp32 master weights and working copies for libraries. Working copies are
/// f32, f16 or bf16, rounded to nearest even; all buffers are 16-byte aligned and disjoint.
namespace hpcai::kernels {

/// to[i] = from[i] for i < count.
void cast_from_f32(const float* from, tensor::DType dtype, void* to, std::int64_t count,
                   Stream stream);
/// to[i] = from[i] for i < count, which is exact.
void cast_to_f32(tensor::DType dtype, const void* from, float* to, std::int64_t count,
                 Stream stream);

/// Rows without padding, (rows, columns, channels) f32, or padded with zeros, (rows,
/// padded_columns, padded_channels) of `dtype`. A row is a pixel of an image, or a row of taps of a
/// KRSC filter.
struct PaddedRows {
    tensor::DType dtype = tensor::DType::f32;
    std::int64_t rows = 0;
    int columns = 1;
    int padded_columns = 1;  // at least first_column + columns
    int first_column = 0;    // index of the first column among the padded ones
    int channels = 0;
    int padded_channels = 0;  // at least `channels`

    std::int64_t padded_elements() const { return rows * padded_columns * padded_channels; }
};
/// Writes all padded elements of `to`.
void pad_channels(const PaddedRows& shape, const float* from, void* to, Stream stream);
/// Copies the elements without padding to `to`.
void strip_channels(const PaddedRows& shape, const void* from, float* to, Stream stream);

}  // namespace hpcai::kernels
