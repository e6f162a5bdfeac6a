// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

#include <hpcai/config/keys.hpp>

#include "document.hpp"

namespace hpcai::config {

/// Returns the value in `node`, which must be legal for `key`. Throws Error(usage), "<position>:
/// <key>: expected ..., got '...'".
Value read_value(const Key& key, const Node& node, const Origin& origin);

/// The legal values of a key with is_file_name: a regular expression for C++ and JSON schema.
inline constexpr const char* kFileNamePattern = "^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$";

/// Returns the shortest decimal form that parses to the same number, also in YAML 1.1 ("1.0e-05").
std::string number_text(double value);

/// Return the section or key of this name. If there is none, throw Error(usage), "where: name:
/// expected ..., got 'name'", with the legal names or the nearest one.
const Section& require_section(const std::string& name, const std::string& where);
const Key& require_key(const std::string& section, const std::string& name,
                       const std::string& where);

/// Returns where a key's value was set: "file:line:column" or "--set a.b=v"; for a default, the
/// last file or, without files, "defaults".
using LocationOf = std::function<std::string(const std::string& full_name)>;

/// Throws Error(usage) for the first contradiction between values that are legal individually.
/// Module plan checks the values that depend on the number of ranks (docs/PAPER.md, eq. 5).
void check_consistency(const Config& config, const LocationOf& location_of);

}  // namespace hpcai::config
