// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <hpcai/base/error.hpp>
#include <hpcai/base/text.hpp>
#include <hpcai/config/interconnect.hpp>

#include "document.hpp"

namespace hpcai::config {
namespace {

/// A key of the description and its value in SI units.
struct Target {
    std::string_view section, key;
    double factor;
    double minimum, maximum;
    bool is_required;
    std::optional<double> value = {};
};

using Targets = std::array<Target, 5>;

void read_number(const Origin& origin, const std::string& section, const Entry& entry,
                 Targets& targets) {
    const auto target = std::ranges::find_if(targets, [&](const Target& row) {
        return row.section == section && row.key == entry.name;
    });
    std::vector<std::string> legal;
    for (const Target& row : targets) legal.push_back(fmt::format("{}.{}", row.section, row.key));
    require(target != targets.end(), ExitCode::usage, "{}: expected one of {}, got {}",
            origin.at(entry.position), fmt::join(legal, ", "),
            in_quotes(section + "." + entry.name));
    const std::string& text = entry.value.text;
    const std::optional<double> value = parse_number<double>(text);
    require(entry.value.kind == NodeKind::scalar && value && *value >= target->minimum &&
                *value <= target->maximum,
            ExitCode::usage, "{}: {}.{}: expected a number from {} to {}, got {}",
            origin.at(entry.value.position), section, entry.name, target->minimum, target->maximum,
            in_quotes(text));
    target->value = *value * target->factor;
}

}  // namespace

Interconnect read_interconnect(const std::string& yaml, const std::string& file_name) {
    Targets targets{Target{"within_node", "latency_us", 1e-6, 0, 1e9, true},
                    Target{"within_node", "gb_per_second", 1e9, 1e-6, 1e9, true},
                    Target{"between_nodes", "latency_us", 1e-6, 0, 1e9, true},
                    Target{"between_nodes", "gb_per_second", 1e9, 1e-6, 1e9, true},
                    Target{"overlap", "overlapped_share", 1, 0, 1, false}};
    const Origin origin = Origin::file(file_name);
    const Node document = parse_document(yaml, origin, "");
    require(document.kind == NodeKind::mapping, ExitCode::usage,
            "{}: expected sections within_node and between_nodes, got none",
            origin.at(document.position));
    for (const Entry& section : document.entries) {
        require(section.value.kind == NodeKind::mapping, ExitCode::usage,
                "{}: {}: expected keys with values", origin.at(section.position),
                in_quotes(section.name));
        for (const Entry& entry : section.value.entries) {
            read_number(origin, section.name, entry, targets);
        }
    }
    for (const Target& target : targets) {
        require(target.value || !target.is_required, ExitCode::usage,
                "{}: {}.{}: expected a number, got nothing", origin.at(document.position),
                target.section, target.key);
    }
    return {{*targets[0].value, *targets[1].value},
            {*targets[2].value, *targets[3].value},
            targets[4].value};
}

}  // namespace hpcai::config
