// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include <hpcai/tensor/dtype.hpp>

namespace hpcai::kernels::reference {

/// Element `index` of a buffer of f32, f16 or bf16 on the host.
double get(tensor::DType dtype, const void* from, std::int64_t index);

/// Writes `value`, rounded to fp32 and then to `dtype`, ties to even. An f16 too large becomes
/// infinite.
void put(tensor::DType dtype, void* to, std::int64_t index, double value);

}  // namespace hpcai::kernels::reference
