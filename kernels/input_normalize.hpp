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
    void* normalized = nullptr;      // (count, padded_channels), at a multiple of 16 bytes
    std::int64_t count = 0;          // pixels
    int channels = 0;                // at most kMaxChannels
    int padded_channels = 0;         // at least `channels`; 4 is fastest
    float scale[kMaxChannels] = {};  // 1 / (255 deviation), rounded from fp64
    float shift[kMaxChannels] = {};  // -mean / deviation, rounded from fp64
};

/// normalized = scale pixel + shift in the first channels, product and sum both rounded to fp32,
/// and 0 in the rest. Throws Error(internal) for a number of channels that does not fit.
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
/// The same numbers, rounded to `dtype`, and 0 in the other channels. Both begin at multiples of 16
/// bytes. Throws Error(internal) for a number of channels that does not fit.
void store_numbers(const StoreNumbersArguments& arguments, Stream stream);

}  // namespace hpcai::kernels
