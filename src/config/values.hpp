// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <hpcai/config/keys.hpp>

#include "document.hpp"

namespace hpcai::config {

/// The legal value of `key` that `node` holds. Throws Error(usage) as
/// "place: section.key: expected ..., got '...'".
Value read_value(const Key& key, const Node& node, const Origin& origin);

/// The texts that a key with is_file_name accepts, as a regular expression of JSON schema.
inline constexpr const char* kFileNamePattern = "^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$";

/// Shortest decimal form that reads back as the same number, also in YAML 1.1 ("1.0e-05").
std::string number_text(double value);

}  // namespace hpcai::config
