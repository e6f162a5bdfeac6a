// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include <hpcai/data/image.hpp>

namespace hpcai::data {

/// A resize, and the window of its result to compute.
struct ResizeRequest {
    RealBox box;      // part of the source that is resized to the target
    int width = 0;    // of the target, pixels
    int height = 0;   // of the target, pixels
    PixelBox window;  // part of the target that is computed
};

/// Returns a request that resizes the entire source to `width` x `height` pixels.
ResizeRequest full_resize_request(const ImageView& source, int width, int height);

/// Antialiased bilinear resize of 8-bit pixels, bitwise equal to Image.resize((width, height),
/// BILINEAR, box).crop(window) of Pillow up to 12 (src/libImaging/Resample.c). Pillow 13 swaps the
/// passes for tall images, where a value may differ by one. `target` is (window.height,
/// window.width, 3). Throws Error(internal) if the box exceeds the source, the window exceeds the
/// target, or either is empty.
void resize_bilinear(const ImageView& source, const ResizeRequest& request,
                     std::span<std::uint8_t> target);

}  // namespace hpcai::data
