// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <hpcai/tensor/dtype.hpp>

namespace hpcai::simt {

using Numbers = std::vector<double>;

/// Reads numbers of f32, f16 or bf16; with `tf32`, f32 numbers are rounded to the 11 bits that
/// tensor cores use.
Numbers read_numbers(tensor::DType dtype, const void* from, std::size_t count, bool tf32);

inline bool is_aligned(const void* address, std::uintptr_t bytes) {
    return reinterpret_cast<std::uintptr_t>(address) % bytes == 0;
}

}  // namespace hpcai::simt
