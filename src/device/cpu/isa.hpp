// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "loops/loops.hpp"

/// What this processor can do; CMake links isa_x86.cpp or isa_other.cpp.
namespace hpcai::device::cpu {

/// The table for the instruction sets this processor has.
const SimdKernels& loops_for_this_cpu();

/// Whether it multiplies bfloat16 itself. Where it does not, oneDNN would emulate that, slower than
/// fp32.
bool multiplies_bf16();

/// Whether it sums products of integers of 8 bits in 32 bits (AVX-512 VNNI), and oneDNN may use
/// that. Without, oneDNN would cut sums to 16 bits.
bool multiplies_int8();

}  // namespace hpcai::device::cpu
