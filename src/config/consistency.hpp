// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

#include <hpcai/config/config.hpp>

namespace hpcai::config {

/// Returns the location where a key's value was set: "file:line:column", "--set a.b=v", or the file
/// alone for a default.
using LocationOf = std::function<std::string(const std::string& full_name)>;

/// Throws Error(usage) for the first contradiction between values that are legal individually.
/// Module plan checks what depends on the launch (eq. 5).
void check_consistency(const Config& config, const LocationOf& location_of);

}  // namespace hpcai::config
