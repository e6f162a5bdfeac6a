// SPDX-License-Identifier: Apache-2.0
#include "names.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <hpcai/base/error.hpp>
#include <hpcai/config/nearest.hpp>

#include "document.hpp"

namespace hpcai::config {
namespace {

std::vector<std::string> names_in(const std::string& section) {
    std::vector<std::string> names;
    for (const Key& key : keys()) {
        if (key.section == section) names.push_back(key.name);
    }
    return names;
}

/// The nearest name of the same section, else the key of this very name in another one.
std::string hint_for(const std::string& section, const std::string& name) {
    for (const Key& key : keys()) {
        if (key.name == name) return fmt::format("; did you mean '{}'?", key.full_name());
    }
    return did_you_mean(name, names_in(section));
}

/// A near name says enough; without one the message lists all of them.
bool lists(const std::string& hint) {
    return !hint.ends_with('?');
}

}  // namespace

const Section& section_named(const std::string& name, const std::string& where) {
    if (const Section* section = find_section(name)) return *section;
    std::vector<std::string> names;
    for (const Section& section : sections()) names.push_back(section.name);
    std::string hint = did_you_mean(name, names);
    if (hint.empty()) hint = hint_for("", name);
    const std::string list = lists(hint) ? fmt::format(" ({})", fmt::join(names, ", ")) : "";
    throw Error(ExitCode::usage, fmt::format("{}: {}: expected a section{}, got {}{}", where,
                                             shown(name), list, in_quotes(name), hint));
}

const Key& key_named(const std::string& section, const std::string& name,
                     const std::string& where) {
    section_named(section, where);
    if (const Key* key = find_key(section, name)) return *key;
    const std::string hint = hint_for(section, name);
    const std::string list =
        lists(hint) ? fmt::format(" ({})", fmt::join(names_in(section), ", ")) : "";
    throw Error(ExitCode::usage,
                fmt::format("{}: {}.{}: expected a key of {}{}, got {}{}", where, section,
                            shown(name), section, list, in_quotes(name), hint));
}

}  // namespace hpcai::config
