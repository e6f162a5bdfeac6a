// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "stream.hpp"

namespace hpcai::kernels {

/// Writes Device::hash of `values` (count) to *sum in device memory; fastest if 16-byte aligned.
void hash(const float* values, std::int64_t count, std::uint64_t* sum, Stream stream);

}  // namespace hpcai::kernels
