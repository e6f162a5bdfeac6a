// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <hpcai/config/keys.hpp>

namespace hpcai::config {

/// The section or key of this name. Throw Error(usage), "where: name: expected ..., got 'name'",
/// naming the legal names and the nearest one, where there is none.
const Section& section_named(const std::string& name, const std::string& where);
const Key& key_named(const std::string& section, const std::string& name, const std::string& where);

}  // namespace hpcai::config
