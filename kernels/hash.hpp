// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "stream.hpp"

namespace hpcai::kernels {

/// *sum = Device::hash of values (count) at any float address; fastest at a multiple of 16 bytes.
/// *sum is in device memory.
void hash(const float* values, std::int64_t count, std::uint64_t* sum, Stream stream);

}  // namespace hpcai::kernels
