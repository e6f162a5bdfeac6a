// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <hpcai/base/error.hpp>
#include <hpcai/config/interconnect.hpp>

#include "document.hpp"

namespace hpcai::config {
namespace {

/// The sections and keys that there are, and where their numbers go.
struct Target {
    std::string_view section, key;
    double factor;
    double minimum, maximum;
    bool is_wanted;
    std::optional<double> value = {};
};

class Description {
public:
    explicit Description(const std::string& file_name) : origin_(Origin::file(file_name)) {}

    void read(const std::string& yaml) {
        const Node document = parse_document(yaml, origin_, "");
        require(document.kind == NodeKind::mapping, ExitCode::usage,
                "{}: expected sections within_node and between_nodes, got none",
                origin_.at(document.place));
        for (const Entry& section : document.entries) read_section(section);
        for (const Target& target : targets_) {
            require(target.value || !target.is_wanted, ExitCode::usage,
                    "{}: {}.{}: expected a number, got nothing", origin_.at(document.place),
                    target.section, target.key);
        }
    }

    double number(std::size_t index) const { return *targets_[index].value; }
    std::optional<double> optional_number(std::size_t index) const { return targets_[index].value; }

private:
    void read_section(const Entry& section) {
        require(section.value.kind == NodeKind::mapping, ExitCode::usage,
                "{}: {}: expected keys with values", origin_.at(section.place),
                in_quotes(section.name));
        for (const Entry& entry : section.value.entries) read_number(section.name, entry);
    }

    void read_number(const std::string& section, const Entry& entry) {
        const auto target = std::ranges::find_if(targets_, [&](const Target& one) {
            return one.section == section && one.key == entry.name;
        });
        std::vector<std::string> legal;
        for (const Target& one : targets_)
            legal.push_back(fmt::format("{}.{}", one.section, one.key));
        require(target != targets_.end(), ExitCode::usage, "{}: expected one of {}, got {}",
                origin_.at(entry.place), fmt::join(legal, ", "),
                in_quotes(section + "." + entry.name));
        const std::string& text = entry.value.text;
        double value = 0;
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
        const bool is_number = entry.value.kind == NodeKind::scalar && !text.empty() &&
                               error == std::errc{} && end == text.data() + text.size();
        require(is_number && value >= target->minimum && value <= target->maximum, ExitCode::usage,
                "{}: {}.{}: expected a number from {} to {}, got {}", origin_.at(entry.value.place),
                section, entry.name, target->minimum, target->maximum, in_quotes(text));
        target->value = value * target->factor;
    }

    Origin origin_;
    std::array<Target, 5> targets_{Target{"within_node", "latency_us", 1e-6, 0, 1e9, true},
                                   Target{"within_node", "gb_per_second", 1e9, 1e-6, 1e9, true},
                                   Target{"between_nodes", "latency_us", 1e-6, 0, 1e9, true},
                                   Target{"between_nodes", "gb_per_second", 1e9, 1e-6, 1e9, true},
                                   Target{"overlap", "hidden_share", 1, 0, 1, false}};
};

}  // namespace

Interconnect read_interconnect(const std::string& yaml, const std::string& file_name) {
    Description description(file_name);
    description.read(yaml);
    return {{description.number(0), description.number(1)},
            {description.number(2), description.number(3)},
            description.optional_number(4)};
}

}  // namespace hpcai::config
