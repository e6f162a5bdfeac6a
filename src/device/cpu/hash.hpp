// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "loops/loops.hpp"

namespace hpcai::device::cpu {

/// Implements Device::hash().
std::uint64_t hash_bits(std::span<const float> values, const SimdKernels& loops);

}  // namespace hpcai::device::cpu
