// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <hpcai/base/rounding.hpp>

#include "context.hpp"
#include "transfers.hpp"

namespace hpcai::device::cuda {

/// Rounds up to the alignment of buffers in device memory.
constexpr std::size_t rounded_up(std::size_t bytes) {
    return align_up(bytes, 256);
}

/// Returns the bytes of an array in device memory, after rounded_up().
constexpr std::size_t array_bytes(std::int64_t elements, DType dtype = DType::f32) {
    return rounded_up(static_cast<std::size_t>(elements) * size_of(dtype));
}

/// Returns array `index` of fp32 arrays that follow each other from `memory`, with `bytes` each.
inline float* array_at(void* memory, std::size_t index, std::size_t bytes) {
    return reinterpret_cast<float*>(static_cast<std::byte*>(memory) + index * bytes);
}

/// Whether kernels compute in this type.
constexpr bool is_floating(DType dtype) {
    return dtype == DType::f32 || dtype == DType::f16 || dtype == DType::bf16;
}

/// Returns the shape in memory: with padding channels if it is (N, H, W, C).
inline Shape stored_shape(Shape shape) {
    if (shape.rank() == 4) shape[3] = stored_channels(shape[3]);
    return shape;
}

/// The per-channel sums that follow the elements of a tensor (ops::outputs_channel_sums).
struct Sums {
    float* sum = nullptr;      // (C)
    float* squares = nullptr;  // (C), sums of the elements' squares
};
inline Sums sums_of(void* value, std::size_t element_bytes, std::int64_t channels) {
    auto* at =
        reinterpret_cast<float*>(static_cast<std::byte*>(value) + sums_offset(element_bytes));
    return {at, at + channels};
}

/// A tensor in device memory, in the layout of the device. The shape is (N, H, W, C), (N, C) or
/// (C), the type f32, f16 or bf16.
struct StoredTensor {
    Shape shape;
    DType dtype;
    void* data;
};
/// Stores one value for each element, rounded to nearest even (f16 may overflow to infinity), and 0
/// in padding channels. `stream` must be that of `transfers`; waits for all work on it. Throws
/// Error(internal) for another shape, type or number of values.
void store_values(std::span<const float> values, const StoredTensor& to, Transfers& transfers,
                  cudaStream_t stream);

}  // namespace hpcai::device::cuda
