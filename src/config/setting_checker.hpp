// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <fmt/format.h>

#include <hpcai/base/error.hpp>

#include "section_keys.hpp"
#include "values.hpp"

namespace hpcai::config {

/// Reports settings that contradict others.
class SettingChecker {
public:
    /// Both arguments must outlive the object.
    SettingChecker(const Config& config, const LocationOf& where)
        : config_(config), location_of_(where) {}

protected:
    void check(bool consistent, const std::string& full_name, const std::string& expected) const {
        if (consistent) return;
        throw Error(ExitCode::usage,
                    fmt::format("{}: {}: expected {}, got {}{}", location_of_(full_name), full_name,
                                expected, in_quotes(value_text(config_, full_name)),
                                has_default(full_name) ? ", the default" : ""));
    }

    bool has_default(const std::string& full_name) const {
        return value_text(config_, full_name) == value_text(Config{}, full_name);
    }

    /// Checks that a key without effect has its default.
    void check_default(const std::string& full_name, const std::string& reason) const {
        check(has_default(full_name), full_name, value_text(Config{}, full_name) + reason);
    }

    /// Returns the reason for a message: ", as device.kind is cpu".
    std::string as(const std::string& full_name) const {
        return fmt::format(", as {} is {}", full_name, value_text(config_, full_name));
    }

    const Config& config_;

private:
    const LocationOf& location_of_;
};

/// Checks the settings of an architecture search, and that other workloads have none.
void check_search(const Config& config, const LocationOf& location_of);

}  // namespace hpcai::config
