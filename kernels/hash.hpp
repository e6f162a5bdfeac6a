// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "stream.hpp"

namespace hpcai::kernels {

/// Writes Device::hash() of `values` (count) to *sum. Both are in device memory, and `values` are
/// read fastest if they are 16-byte aligned.
void hash(const float* values, std::int64_t count, std::uint64_t* sum, Stream stream);

}  // namespace hpcai::kernels
