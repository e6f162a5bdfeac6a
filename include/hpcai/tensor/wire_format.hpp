// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace hpcai::tensor {

/// Number format of gradients on their way between ranks. bf16: each value rounded to nearest even.
/// fp16 and int8: blocks of kWireBlock values with a scale of their own in fp32, so that none of
/// them overflows however large the values and the sum are (up to 3e38). A block's scale is of its
/// largest finite magnitude m: fp16 divides by the power of two that brings m into [2^14, 2^15) and
/// rounds to nearest even; int8 divides by m / 127 and rounds to nearest even, to -127 ... 127.
/// Infinities and NaN stay what they are in all formats but int8, which makes +infinity of both;
/// there a block whose m is below 1e-35 is sent as zeros.
enum class WireFormat { fp32, bf16, fp16, int8 };

inline constexpr std::size_t kWireBlock = 256;  // values that share a scale

}  // namespace hpcai::tensor
