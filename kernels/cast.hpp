// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include <hpcai/tensor/dtype.hpp>

#include "stream.hpp"

/// Conversions of images and weights to the types and layouts that kernels and libraries read.
/// Types are f32, f16 and bf16, rounded to nearest even; all buffers are 16-byte aligned and
/// disjoint.
namespace hpcai::kernels {

/// Rows (rows, channels) of `dtype`, each followed by zeros up to padded_channels. A row is, for
/// example, a pixel of an image or a tap of a KRSC filter.
struct PaddedRows {
    tensor::DType dtype = tensor::DType::f32;
    std::int64_t rows = 0;
    int channels = 0;
    int padded_channels = 0;  // at least `channels`

    std::int64_t padded_elements() const { return rows * padded_channels; }
};
/// Writes the padded rows `to` from rows of `from_dtype`. Fastest if there is no padding. Throws
/// Error(internal) unless 1 <= channels <= padded_channels.
void pad_rows(const PaddedRows& shape, tensor::DType from_dtype, const void* from, void* to,
              Stream stream);
/// Writes rows `to` of `to_dtype` from the padded rows `from`. Fastest if there is no padding.
void strip_rows(const PaddedRows& shape, const void* from, tensor::DType to_dtype, void* to,
                Stream stream);

/// Images of height x width pixels in blocks of 2 x 2 pixels, (images, block_rows(), columns(),
/// adjacent, 4 padded_channels) of `dtype`. Block (i, j) has the channels of four pixels (row,
/// column): with h = 2 i - border and w = 2 j - border, (h, w), (h, w + 1), (h + 1, w) and
/// (h + 1, w + 1). Column j of row i has `adjacent` blocks from (i, j - first_offset()) on. Pixels
/// outside of the image and padding channels are 0.
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
/// Error(internal) unless a pixel has a multiple of 8 bytes and a column at most 256 bytes.
void to_blocks(const BlockedImages& shape, const void* from, void* to, Stream stream);
/// Converts fp32 filters (images, height, width, channels) to blocks; `adjacent` must be 1.
void filters_to_blocks(const BlockedImages& shape, const float* from, void* to, Stream stream);
/// The inverse of filters_to_blocks().
void filters_from_blocks(const BlockedImages& shape, const void* from, float* to, Stream stream);

}  // namespace hpcai::kernels
