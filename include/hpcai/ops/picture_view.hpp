// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace hpcai::ops {

/// A row of a batch as a part of a decoded picture: RGB bytes in device memory, rows contiguous.
struct PictureView {
    std::int64_t offset_bytes = -1;  // of the picture; -1: there is none, the row stays as it is
    std::int32_t picture_width = 0;  // pixels, like all that follow
    std::int32_t left = 0;           // of the crop
    std::int32_t top = 0;
    std::int32_t width = 0;  // at most kLargestReduction x the side of the batch's images
    std::int32_t height = 0;
    bool flip = false;           // left and right swapped
    bool vertical_flip = false;  // top and bottom swapped
};

inline constexpr int kLargestReduction = 16;  // of a crop's side when it is resized

/// A batch of views. All pointers are to device memory.
struct ViewBatch {
    const std::uint8_t* pictures = nullptr;  // what the views' offsets count from
    const PictureView* views = nullptr;      // (rows), at a multiple of 16 bytes
    std::int64_t rows = 0;
    std::uint8_t* images = nullptr;  // (rows, side, side, 3)
    int side = 0;
};

}  // namespace hpcai::ops
