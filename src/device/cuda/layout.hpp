// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include <hpcai/base/rounding.hpp>

#include "context.hpp"
#include "transfers.hpp"

namespace hpcai::device::cuda {

/// Rounded up, so that what lies behind is aligned as well as what lies before.
constexpr std::size_t rounded_up(std::size_t bytes) {
    return align_up(bytes, 256);
}

/// Whether kernels compute in it.
constexpr bool is_floating(DType dtype) {
    return dtype == DType::f32 || dtype == DType::f16 || dtype == DType::bf16;
}

/// The extents of an activation in memory.
inline Shape stored_shape(Shape shape) {
    if (shape.rank() == 4) shape[3] = stored_channels(shape[3]);
    return shape;
}

/// What lies behind the elements of a value that carries the sums of its channels.
struct Sums {
    float* sum = nullptr;      // (C)
    float* squares = nullptr;  // (C), sums of the elements' squares
};
inline Sums sums_of(void* value, std::size_t element_bytes, std::int64_t channels) {
    auto* at =
        reinterpret_cast<float*>(static_cast<std::byte*>(value) + sums_offset(element_bytes));
    return {at, at + channels};
}

/// Throws Error(internal) unless `values` values of this shape, (N, H, W, C), (N, C) or (C), can be
/// stored in this type.
void check_values(std::size_t values, const Shape& shape, DType dtype);

/// Where values lie on the device.
struct Place {
    Shape shape;
    DType dtype;
    void* data;
};
/// Stores values that pass check_values(): rounded to nearest even, too large an f16 infinite,
/// channels that are not given 0. Behind what `stream`, that of `transfers`, holds, and waits for
/// it.
void store_values(std::span<const float> values, const Place& to, Transfers& transfers,
                  cudaStream_t stream);
/// The way back, on the host, of the bytes of such values.
void from_stored(std::span<const std::byte> stored, const Shape& shape, DType dtype,
                 std::span<float> values);

}  // namespace hpcai::device::cuda
