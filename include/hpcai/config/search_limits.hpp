// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace hpcai::config {

/// Most epochs of all trials of a group of a search, whose numbers have 16 bits in random streams.
inline constexpr std::int64_t kMaxSearchEpochs = 65536;

}  // namespace hpcai::config
