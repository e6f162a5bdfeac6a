// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace hpcai::config {

/// Maximum number of epochs of all trials of a group. Random streams number them with 16 bits.
inline constexpr std::int64_t kMaxSearchEpochs = 65536;

}  // namespace hpcai::config
