// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <string_view>
#include <system_error>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <hpcai/base/error.hpp>
#include <hpcai/base/text.hpp>
#include <hpcai/config/machine.hpp>
#include <hpcai/config/nearest.hpp>

#include "document.hpp"

namespace hpcai::config {

namespace fs = std::filesystem;

namespace {

/// A number in the description of a machine, and the factor that converts it to SI units.
struct Number {
    std::string key;  // "section.key"
    double factor;
    double minimum, maximum;
    bool is_count = false;
};

std::vector<Number> legal_numbers() {
    std::vector<Number> numbers{
        {"device.gpus_per_node", 1, 1, 1024, true}, {"device.cores_per_node", 1, 1, 4096, true},
        {"device.memory_gb", 1e9, 1e-3, 1e6},       {"device.memory_gb_per_second", 1e9, 1e-3, 1e6},
        {"within_node.latency_us", 1e-6, 0, 1e9},   {"within_node.gb_per_second", 1e9, 1e-6, 1e9},
        {"between_nodes.latency_us", 1e-6, 0, 1e9}, {"between_nodes.gb_per_second", 1e9, 1e-6, 1e9},
        {"overlap.overlapped_share", 1, 0, 1}};
    for (const char* precision : {"fp32", "tf32", "fp16", "mixed", "bf16", "int8"}) {
        numbers.push_back({fmt::format("device.{}_tflops", precision), 1e12, 1e-3, 1e6});
        numbers.push_back({fmt::format("device.{}_training_tflops", precision), 1e12, 1e-3, 1e6});
    }
    return numbers;
}

double read_number(const Origin& origin, const std::string& key, const Entry& entry) {
    const std::vector<Number> numbers = legal_numbers();
    std::vector<std::string> legal{"device.name", "device.source"};
    for (const Number& one : numbers) legal.push_back(one.key);
    const auto number = std::ranges::find(numbers, key, &Number::key);
    require(number != numbers.end(), ExitCode::usage, "{}: expected one of {}, got {}{}",
            origin.at(entry.position), fmt::join(legal, ", "), in_quotes(key),
            did_you_mean(key, legal));
    const std::string& text = entry.value.text;
    const std::optional<double> value = parse_number<double>(text);
    require(entry.value.kind == NodeKind::scalar && value && *value >= number->minimum &&
                *value <= number->maximum && (!number->is_count || *value == std::floor(*value)),
            ExitCode::usage, "{}: {}: expected {} from {} to {}, got {}",
            origin.at(entry.value.position), key, number->is_count ? "an integer" : "a number",
            number->minimum, number->maximum, in_quotes(text));
    return *value * number->factor;
}

/// Reads the keys of a section. Adds its entries to machine.figures and sets machine.name.
std::map<std::string, double> read_section(const Origin& origin, const Entry& section,
                                           Machine& machine) {
    constexpr std::string_view kSections[] = {"device", "within_node", "between_nodes", "overlap"};
    require(section.value.kind == NodeKind::mapping &&
                std::ranges::find(kSections, section.name) != std::end(kSections),
            ExitCode::usage, "{}: expected one of the sections {}, got {}",
            origin.at(section.position), fmt::join(kSections, ", "), in_quotes(section.name));
    std::map<std::string, double> values;
    std::vector<std::string> figures;
    for (const Entry& entry : section.value.entries) {
        const std::string key = section.name + "." + entry.name;
        const std::string text = printable(entry.value.text);
        if (key != "device.name" && key != "device.source") {
            values[entry.name] = read_number(origin, key, entry);
        } else {
            require(!text.empty(), ExitCode::usage, "{}: {}: expected a string",
                    origin.at(entry.value.position), key);
            if (entry.name == "name") machine.name = text;
        }
        figures.push_back(entry.name + " " + text);
    }
    machine.figures.push_back(fmt::format("{}: {}", section.name, fmt::join(figures, ", ")));
    return values;
}

std::optional<double> find(const std::map<std::string, double>& values, const std::string& key) {
    const auto found = values.find(key);
    return found == values.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace

std::optional<double> Machine::device_value(const std::string& key) const {
    return find(device, key);
}

Machine read_machine(const std::string& yaml, const std::string& file_name) {
    const Origin origin{file_name};
    const Node document = parse_document(yaml, origin, "");
    require(document.kind == NodeKind::mapping, ExitCode::usage,
            "{}: expected sections device, within_node, between_nodes or overlap, got none",
            origin.at(document.position));
    Machine machine;
    for (const Entry& section : document.entries) {
        const std::map<std::string, double> values = read_section(origin, section, machine);
        if (section.name == "device") machine.device = values;
        if (section.name == "overlap") machine.overlapped_share = find(values, "overlapped_share");
        const std::optional<double> bandwidth = find(values, "gb_per_second");
        const std::optional<double> latency = find(values, "latency_us");
        require(bandwidth || !latency, ExitCode::usage,
                "{}: {}.gb_per_second: expected a number, as latency_us is set, got nothing",
                origin.at(section.position), section.name);
        if (!bandwidth) continue;
        (section.name == "within_node" ? machine.within_node : machine.between_nodes) =
            Link{latency.value_or(0), *bandwidth};
    }
    return machine;
}

std::map<std::string, fs::path> shipped_machines(const fs::path& program) {
    std::error_code error;
    const fs::path folder = fs::read_symlink(program, error).parent_path();
    std::map<std::string, fs::path> machines;
    for (const char* configs : {"../share/hpcai500/configs", "../configs", "../../configs"}) {
        fs::directory_iterator entry(folder / configs / "machines", error);
        for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
            const fs::path& file = entry->path();
            if (file.extension() == ".yaml" && fs::is_regular_file(file, error))
                machines.emplace(file.stem(), file.lexically_normal());
        }
    }
    return machines;
}

}  // namespace hpcai::config
