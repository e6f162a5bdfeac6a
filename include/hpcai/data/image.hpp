// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace hpcai::data {

inline constexpr int kImageChannels = 3;  // red, green, blue, interleaved

/// A rectangle of whole pixels.
struct PixelBox {
    int left = 0;
    int top = 0;
    int width = 0;
    int height = 0;
    bool operator==(const PixelBox&) const = default;
};

/// A rectangle with fractional edges, in pixels; pixel i covers [i, i + 1).
struct RealBox {
    float left = 0;
    float top = 0;
    float right = 0;
    float bottom = 0;
};

/// Pixels owned by somebody else: rows of `width` RGB triples, `stride_bytes` apart.
struct ImageView {
    const std::uint8_t* pixels = nullptr;
    int width = 0;
    int height = 0;
    std::ptrdiff_t stride_bytes = 0;

    const std::uint8_t* row(int y) const { return pixels + y * stride_bytes; }
    /// The part of the image in `box`, which lies inside it.
    ImageView crop(const PixelBox& box) const {
        return {row(box.top) + box.left * kImageChannels, box.width, box.height, stride_bytes};
    }
};

/// An RGB picture, rows contiguous.
struct Image {
    int width = 0;
    int height = 0;
    std::vector<std::uint8_t> pixels;  // (height, width, 3)

    Image() = default;
    Image(int image_width, int image_height, std::uint8_t value = 0)
        : width(image_width),
          height(image_height),
          pixels(std::size_t{kImageChannels} * image_width * image_height, value) {}

    ImageView view() const {
        return {pixels.data(), width, height, static_cast<std::ptrdiff_t>(width) * kImageChannels};
    }
};

}  // namespace hpcai::data
