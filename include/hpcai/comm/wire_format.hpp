// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace hpcai::comm {

/// Number format of gradients on their way between ranks. bf16: each value rounded to nearest even.
/// fp16 and int8: blocks of kWireBlock values with a scale of their own in fp32, so that none of
/// them overflows however large the values and the sum are (up to 3e38). A block's scale is of its
/// largest finite magnitude m: fp16 divides by the power of two that brings m into [2^14, 2^15) and
/// rounds to nearest even; int8 divides by m / 127 and rounds to nearest even, to -127 ... 127.
/// Infinities and NaN stay what they are in all formats but int8, which makes +infinity of both;
/// there a block whose m is below 1e-35 is sent as zeros.
enum class WireFormat { fp32, bf16, fp16, int8 };

/// As communication.precision has it.
std::string_view name_of(WireFormat format);

inline constexpr std::size_t kWireBlock = 256;  // values that share a scale

/// Bytes of one value, without scales.
std::size_t value_bytes(WireFormat format);

/// Bytes of `values` values, scales in: the values, up to the next multiple of 4 bytes, and behind
/// them the scales.
std::size_t wire_bytes(WireFormat format, std::size_t values);

/// Writes `values` to `wire`, which begins at a multiple of 4 bytes and has wire_bytes(). With a
/// `residual`, as long as `values` or empty, it is error feedback (Seide et al. 2014): what it
/// holds is added first, and then it holds what rounding has taken away, 0 where that is not
/// finite.
void encode(WireFormat format, std::span<const float> values, std::span<std::byte> wire,
            std::span<float> residual);

/// values[i] = the i-th value of `wire`.
void decode(WireFormat format, std::span<const std::byte> wire, std::span<float> values);

/// values[i] += the i-th value of `wire`, in fp32.
void add_decoded(WireFormat format, std::span<const std::byte> wire, std::span<float> values);

}  // namespace hpcai::comm
