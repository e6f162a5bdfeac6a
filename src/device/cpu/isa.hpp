// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "loops/loops.hpp"

/// Instruction sets of this processor; CMake links isa_x86.cpp or isa_other.cpp.
namespace hpcai::device::cpu {

/// Returns the engine's own loops, compiled for the instruction sets of this processor.
const SimdKernels& loops_for_this_cpu();

/// Returns whether the processor multiplies bfloat16 numbers. Otherwise oneDNN emulates bfloat16,
/// which is slower than fp32.
bool has_native_bf16();

/// Returns whether the processor adds products of 8-bit integers in 32 bits (AVX-512 VNNI) and
/// oneDNN may use this. Otherwise oneDNN would saturate sums at 16 bits.
bool has_native_int8();

}  // namespace hpcai::device::cpu
