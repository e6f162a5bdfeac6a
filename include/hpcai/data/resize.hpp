// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include <hpcai/data/image.hpp>

namespace hpcai::data {

/// The pixels of the resized picture to compute.
struct ResizeRequest {
    RealBox box;      // part of the source that is stretched over the target
    int width = 0;    // target size, pixels
    int height = 0;   // target size, pixels
    PixelBox window;  // part of the target that is computed
};

/// Returns a request for a whole target of `width` x `height` from the whole source.
ResizeRequest whole_resize(const ImageView& source, int width, int height);

/// Antialiased bilinear resize of 8-bit pixels, bit by bit equal to Image.resize((width, height),
/// BILINEAR, box).crop(window) of Pillow up to 12 (src/libImaging/Resample.c). Pillow 13 swaps the
/// passes for tall pictures, where a value may differ by one. `target` is (window.height,
/// window.width, 3). Throws Error(internal) when the box leaves the source, the window leaves the
/// target, or either is empty.
void resize_bilinear(const ImageView& source, const ResizeRequest& request,
                     std::span<std::uint8_t> target);

}  // namespace hpcai::data
