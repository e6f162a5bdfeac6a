// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "loops/loops.hpp"

/// Features of this processor; CMake links isa_x86.cpp or isa_other.cpp.
namespace hpcai::device::cpu {

/// The table of loops for the instruction sets of this processor.
const SimdKernels& loops_for_this_cpu();

/// Whether it has bfloat16 multiplication. Without it, oneDNN emulates bfloat16, which is slower
/// than fp32.
bool multiplies_bf16();

/// Whether it sums products of 8-bit integers in 32 bits (AVX-512 VNNI) and oneDNN may use that.
/// Otherwise oneDNN would saturate sums at 16 bits.
bool multiplies_int8();

}  // namespace hpcai::device::cpu
