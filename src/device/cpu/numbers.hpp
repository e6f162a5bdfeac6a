// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstdint>

#include "context.hpp"

/// Single numbers of values in memory, for loops too short to have a version per instruction set.
namespace hpcai::device::cpu {

struct BFloat {
    std::uint16_t bits;
};
struct Half {
    std::uint16_t bits;
};

inline float to_float(std::uint8_t number) {
    return static_cast<float>(number);
}
inline float to_float(float number) {
    return number;
}
inline float to_float(BFloat number) {
    return std::bit_cast<float>(std::uint32_t{number.bits} << 16);
}
/// The bits of a half's exponent and fraction are those of a float that is 2^112 times too small.
inline float to_float(Half number) {
    const std::uint32_t magnitude = std::uint32_t{number.bits & 0x7fffu} << 13;
    const std::uint32_t sign = std::uint32_t{number.bits & 0x8000u} << 16;
    const float finite = std::bit_cast<float>(magnitude) * 0x1p112f;
    const std::uint32_t bits =
        magnitude >= 0x0f800000u ? magnitude | 0x7f800000u : std::bit_cast<std::uint32_t>(finite);
    return std::bit_cast<float>(bits | sign);
}

/// Rounded to nearest even.
inline BFloat to_bfloat(float number) {
    if (number != number) return {0x7fc0};
    const auto bits = std::bit_cast<std::uint32_t>(number);
    return {static_cast<std::uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16)};
}

/// Where the numbers of an image value lie, in fp32 or bf16.
class ImageNumbers {
public:
    ImageNumbers() = default;
    ImageNumbers(const Layouts& layouts, const Shape& shape, DType dtype)
        : grid_(tile_grid(layouts, shape, dtype)) {}

    std::int64_t index(std::int64_t image, std::int64_t pixel, std::int64_t channel) const {
        return image * grid_.image_stride + channel / grid_.tile.lanes * grid_.tile_stride +
               pixel * grid_.tile.stride + channel % grid_.tile.lanes;
    }
    /// Between the numbers of a channel.
    std::int64_t pixel_stride() const { return grid_.tile.stride; }
    float read(const void* base, std::int64_t index) const {
        if (grid_.tile.dtype == DType::f32) return static_cast<const float*>(base)[index];
        return to_float(static_cast<const BFloat*>(base)[index]);
    }
    void write(void* base, std::int64_t index, float number) const {
        if (grid_.tile.dtype == DType::f32) {
            static_cast<float*>(base)[index] = number;
        } else {
            static_cast<BFloat*>(base)[index] = to_bfloat(number);
        }
    }

private:
    TileGrid grid_;
};

}  // namespace hpcai::device::cpu
