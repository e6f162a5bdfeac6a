// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace hpcai::ops {

/// A crop of a decoded picture that becomes one image of a batch. The picture and the image are RGB
/// bytes in device memory, with contiguous rows.
struct PictureView {
    std::int64_t offset_bytes = -1;  // of the picture; -1: no image is written
    std::int32_t picture_width = 0;  // in pixels, like the next four fields
    std::int32_t left = 0;           // of the crop
    std::int32_t top = 0;
    std::int32_t width = 0;  // width, height: at most kMaxCropReduction x ViewBatch::side
    std::int32_t height = 0;
    bool flip = false;           // left and right swapped
    bool vertical_flip = false;  // top and bottom swapped
};

inline constexpr int kMaxCropReduction = 16;  // crop side / side of the resized image

/// A batch of views. All pointers are to device memory.
struct ViewBatch {
    const std::uint8_t* pictures = nullptr;  // PictureView::offset_bytes counts from here
    const PictureView* views = nullptr;      // (rows), 16-byte aligned
    std::int64_t rows = 0;
    std::uint8_t* images = nullptr;  // (rows, side, side, 3)
    int side = 0;
};

}  // namespace hpcai::ops
