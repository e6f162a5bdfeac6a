// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include <hpcai/tensor/dtype.hpp>

#include "stream.hpp"

namespace hpcai::kernels {

struct NormalizeArguments {
    static constexpr int kMaxChannels = 32;

    const std::uint8_t* pixels = nullptr;  // (count, channels), at any address
    tensor::DType dtype = tensor::DType::f32;
    void* normalized = nullptr;      // (count, padded_channels), 16-byte aligned
    std::int64_t count = 0;          // pixels
    int channels = 0;                // 1 to kMaxChannels
    int padded_channels = 0;         // at least `channels`; 4 is fastest
    float scale[kMaxChannels] = {};  // 1 / (255 deviation), rounded from fp64
    float shift[kMaxChannels] = {};  // -mean / deviation, rounded from fp64
};

/// normalized = scale pixel + shift, with product and sum rounded to fp32, then to `dtype`. Padding
/// channels are set to 0. Throws Error(internal) for channels beyond the limits above.
void input_normalize(const NormalizeArguments& arguments, Stream stream);

struct StoreNumbersArguments {
    tensor::DType from_dtype = tensor::DType::f32;  // f32, f16 or bf16, like `dtype`
    const void* from = nullptr;                     // (count, channels)
    tensor::DType dtype = tensor::DType::f32;
    void* to = nullptr;      // (count, padded_channels)
    std::int64_t count = 0;  // pixels
    int channels = 0;
    int padded_channels = 0;  // at least `channels`; fastest if equal
};
/// Copies the numbers, rounded to `dtype`, and writes 0 to the padding channels. Both buffers are
/// 16-byte aligned. Throws Error(internal) unless 1 <= channels <= padded_channels.
void store_numbers(const StoreNumbersArguments& arguments, Stream stream);

}  // namespace hpcai::kernels
