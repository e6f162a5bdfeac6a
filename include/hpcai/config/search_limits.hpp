// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace hpcai::config {

/// Maximum sum of the epochs of a group's trials. Random streams number these epochs with 16 bits.
inline constexpr std::int64_t kMaxSearchEpochs = 65536;

}  // namespace hpcai::config
