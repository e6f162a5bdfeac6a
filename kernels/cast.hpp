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

/// Rows without padding, (rows, channels) f32, or padded with zeros, (rows, padded_channels) of
/// `dtype`. A row is a pixel of an image or a tap of a KRSC filter.
struct PaddedRows {
    tensor::DType dtype = tensor::DType::f32;
    std::int64_t rows = 0;
    int channels = 0;
    int padded_channels = 0;  // at least `channels`

    std::int64_t padded_elements() const { return rows * padded_channels; }
};
/// Writes all padded elements of `to`.
void pad_channels(const PaddedRows& shape, const float* from, void* to, Stream stream);
/// Copies the elements without padding to `to`.
void strip_channels(const PaddedRows& shape, const void* from, float* to, Stream stream);

/// Images of height x width pixels in blocks of 2 x 2 pixels, (images, block_rows(), columns(),
/// adjacent, 4 padded_channels) of `dtype`. Block (i, j) has the channels of four pixels (row,
/// column): with h = 2 i - border and w = 2 j - border, (h, w), (h, w + 1), (h + 1, w) and
/// (h + 1, w + 1). Column j has the `adjacent` blocks from (i, j - first_offset()). Pixels outside
/// of the image and padding channels are 0.
struct BlockedImages {
    tensor::DType dtype = tensor::DType::f32;
    std::int64_t images = 0;  // images or filters
    int height = 0, width = 0;
    int channels = 0;
    int padded_channels = 0;  // at least `channels`
    int border = 0;           // rows and columns of zeros before the first pixel: 0 or 1
    int adjacent = 1;         // blocks of a column

    int block_rows() const { return (height + border + 1) / 2; }
    int block_columns() const { return (width + border + 1) / 2; }
    int first_offset() const { return (adjacent - 1) / 2; }
    int columns() const { return block_columns() + 2 * first_offset() - adjacent + 1; }
    std::int64_t elements() const {
        return images * block_rows() * columns() * adjacent * 4 * padded_channels;
    }
};
/// Reorders images (images, height, width, padded_channels) of `dtype` into blocks. Throws
/// Error(internal) unless a pixel has a multiple of 8 bytes and a column at most 256.
void to_blocks(const BlockedImages& shape, const void* from, void* to, Stream stream);
/// Converts fp32 filters (images, height, width, channels) to blocks, one in a column.
void filters_to_blocks(const BlockedImages& shape, const float* from, void* to, Stream stream);
/// Converts blocks to fp32 filters (images, height, width, channels).
void filters_from_blocks(const BlockedImages& shape, const void* from, float* to, Stream stream);

}  // namespace hpcai::kernels
