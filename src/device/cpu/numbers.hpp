// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <hpcai/tensor/half.hpp>

#include "context.hpp"

/// Access to single elements, for loops that are not compiled for several instruction sets.
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
    return tensor::from_bf16(number.bits);
}
inline float to_float(Half number) {
    return tensor::from_f16(number.bits);
}
/// Rounds to nearest even; every NaN becomes 0x7fc0.
inline BFloat to_bfloat(float number) {
    return {number != number ? std::uint16_t{0x7fc0} : tensor::to_bf16(number)};
}

/// Writes element `index` of an array of type f32 or bf16.
inline void write_number(DType dtype, void* base, std::int64_t index, float number) {
    if (dtype == DType::f32) {
        static_cast<float*>(base)[index] = number;
    } else {
        static_cast<BFloat*>(base)[index] = to_bfloat(number);
    }
}

/// Reads and writes single elements of an image in fp32 or bf16.
class ImageAccessor {
public:
    ImageAccessor(const Layouts& layouts, const Shape& shape, DType dtype)
        : grid_(tile_grid(layouts, shape, dtype)) {}

    /// Returns the index of an element; a pixel is y * width + x.
    std::int64_t index(std::int64_t image, std::int64_t pixel, std::int64_t channel) const {
        return image * grid_.image_stride + channel / grid_.tile.lanes * grid_.tile_stride +
               pixel * grid_.tile.stride + channel % grid_.tile.lanes;
    }
    /// Returns the distance between neighbouring pixels of a channel, in elements.
    std::int64_t pixel_stride() const { return grid_.tile.stride; }
    float read(const void* base, std::int64_t index) const {
        if (grid_.tile.dtype == DType::f32) return static_cast<const float*>(base)[index];
        return to_float(static_cast<const BFloat*>(base)[index]);
    }
    void write(void* base, std::int64_t index, float number) const {
        write_number(grid_.tile.dtype, base, index, number);
    }

private:
    TileGrid grid_;
};

}  // namespace hpcai::device::cpu
