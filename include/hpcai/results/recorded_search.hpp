// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <hpcai/config/config.hpp>

namespace hpcai::results {

/// With search.history recorded, checks that search.recorded is a complete result whose search had
/// the seed, root, number of groups and settings of `config`, so that its trials can be repeated.
/// Throws Error(usage) naming the key or the file that differs.
void require_replayable(const config::Config& config, int groups);

}  // namespace hpcai::results
