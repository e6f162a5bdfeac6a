// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace hpcai::tensor {

enum class DType : std::uint8_t { f32, bf16, f16, u8, s32 };

/// Bytes of one element.
constexpr std::size_t size_of(DType dtype) {
    constexpr std::array<std::size_t, 5> kBytes{4, 2, 2, 1, 4};
    return kBytes.at(static_cast<std::size_t>(dtype));
}

constexpr std::string_view name_of(DType dtype) {
    constexpr std::array kNames{"fp32", "bf16", "fp16", "uint8", "int32"};
    return kNames.at(static_cast<std::size_t>(dtype));
}

/// The number format of gradients in messages between ranks. bf16 rounds each value to nearest
/// even. fp16 and int8 use blocks of kWireBlock values with one fp32 scale each, so that values and
/// sums up to 3e38 do not overflow. The scale depends on the largest finite magnitude m of the
/// block. fp16 divides by the power of two, at least 2^-126, that moves m to [2^14, 2^15). int8
/// divides by m / 127, which gives -127 to 127. Both then round to nearest even. Infinities and NaN
/// are preserved, except that int8 changes them to +infinity. int8 sends a block with m below 1e-35
/// as zeros.
enum class WireFormat { fp32, bf16, fp16, int8 };

inline constexpr std::size_t kWireBlock = 256;  // number of values that share a scale

}  // namespace hpcai::tensor
