// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

#include <hpcai/config/config.hpp>

namespace hpcai::config {

/// Where a key's value was given: "file:line:column", "--set a.b=v", or the file alone for a
/// value that nobody gave.
using PlaceOf = std::function<std::string(const std::string& full_name)>;

/// Throws Error(usage) for the first pair of legal values that contradict each other. What depends
/// on the launch (eq. 5) is checked by plan.
void check_consistency(const Config& config, const PlaceOf& place_of);

}  // namespace hpcai::config
