// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <hpcai/records/record_fields.hpp>

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

/// A view of pixels: rows of `width` RGB triples, `stride_bytes` apart.
struct ImageView {
    const std::uint8_t* pixels = nullptr;
    int width = 0;
    int height = 0;
    std::ptrdiff_t stride_bytes = 0;

    const std::uint8_t* row(int y) const { return pixels + y * stride_bytes; }
    /// Returns the part of the image in `box`, which must lie inside it.
    ImageView crop(const PixelBox& box) const {
        return {row(box.top) + box.left * kImageChannels, box.width, box.height, stride_bytes};
    }
};

/// An RGB image, rows contiguous.
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

/// A labelled object of an image: [x1, x2) columns x [y1, y2) rows. Pixel i covers [i, i + 1).
struct Box {
    float x1 = 0;
    float y1 = 0;
    float x2 = 0;
    float y2 = 0;
    std::int32_t category = 1;  // from 1 on; 0 is the background

    HPCAI_RECORD(Box, x1, y1, x2, y2, category);
};

}  // namespace hpcai::data
