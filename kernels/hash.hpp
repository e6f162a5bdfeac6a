// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "stream.hpp"

namespace hpcai::kernels {

/// *sum = Device::hash of values (count), which may begin at any float; fastest at a multiple of 16
/// bytes. Overwrites *sum, which lies in device memory.
void hash(const float* values, std::int64_t count, std::uint64_t* sum, Stream stream);

}  // namespace hpcai::kernels
