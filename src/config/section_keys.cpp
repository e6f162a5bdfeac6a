// SPDX-License-Identifier: Apache-2.0
#include "section_keys.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <hpcai/base/error.hpp>
#include <hpcai/config/nearest.hpp>

#include "document.hpp"
#include "values.hpp"

namespace hpcai::config {
namespace {

/// Returns the names of a section's keys; of all keys if `section` is empty.
std::vector<std::string> names_in(const std::string& section) {
    std::vector<std::string> names;
    for (const Key& key : keys())
        if (section.empty() || key.section == section) names.push_back(key.name);
    return names;
}

/// Suggests the key of this name or synonym in any section, else the nearest name of the section,
/// or the nearest key if `section` is empty.
std::string hint_for(const std::string& section, const std::string& name) {
    std::string known = full_name_of(name);
    if (known.empty() && section.empty()) known = full_name_of(nearest(name, names_in("")));
    return known.empty() ? did_you_mean(name, names_in(section))
                         : fmt::format("; did you mean '{}'?", known);
}

/// Returns all legal names in parentheses, or nothing if there is a suggestion.
std::string list_of(const std::vector<std::string>& names, const std::string& hint) {
    return hint.empty() ? fmt::format(" ({})", fmt::join(names, ", ")) : "";
}

}  // namespace

bool Bounds::contain(double value) const noexcept {
    return (minimum_is_legal ? value >= minimum : value > minimum) &&
           (maximum_is_legal ? value <= maximum : value < maximum);
}

const std::vector<Section>& sections() {
    static const std::vector<Section> table{
        {"run", "Name, output, measurement and life cycle of the run."},
        {"submission",
         "The submitter and the nine layers of the system; a ranking needs all keys except "
         "contact."},
        {"workload", "Task, model, input format, target quality and length of training."},
        {"detector", "Settings of a detector (workload.model faster_rcnn_r50_fpn)."},
        {"search", "Architecture search (workload.kind architecture_search)."},
        {"bagging",
         "Number of base models, their training samples and the combination of their "
         "predictions."},
        {"parallel", "Parallelization of one base model's training."},
        {"data", "Source and preparation of the samples."},
        {"training", "Batch, optimizer, learning rate, regularization and precision."},
        {"communication", "All-reduce of gradients among the ranks of one base model."},
        {"device", "Computing device of each rank."}};
    return table;
}

const std::vector<Key>& keys() {
    static const std::vector<Key> table = [] {
        std::vector<Key> all;
        for (const auto make :
             {run_keys, run_lifecycle_keys, submission_keys, workload_keys, detector_keys,
              search_keys, bagging_keys, parallel_keys, data_source_keys, data_preparation_keys,
              data_feeding_keys, batch_and_rate_keys, optimizer_keys, engine_keys,
              communication_keys, device_keys}) {
            for (Key& key : make()) all.push_back(std::move(key));
        }
        return all;
    }();
    return table;
}

const Key* find_key(std::string_view section, std::string_view name) {
    for (const Key& key : keys())
        if (key.section == section && key.name == name) return &key;
    return nullptr;
}

std::string full_name_of(std::string_view name) {
    for (const Key& key : keys())
        if (key.name == resolve_synonym(name) || key.full_name() == name) return key.full_name();
    return "";
}

std::string value_text(const Config& config, std::string_view full_name) {
    const auto dot = full_name.find('.');
    const Key* key = dot == std::string_view::npos
                         ? nullptr
                         : find_key(full_name.substr(0, dot), full_name.substr(dot + 1));
    ensure(key != nullptr, "no configuration key is called '{}'", full_name);
    const Value value = key->get(config);
    return key->type == KeyType::text ? std::get<std::string>(value) : yaml_value(*key, value);
}

const Section& require_section(const std::string& name, const std::string& where) {
    std::vector<std::string> names;
    for (const Section& section : sections()) {
        if (section.name == name) return section;
        names.push_back(section.name);
    }
    std::string hint = did_you_mean(name, names);
    if (hint.empty()) hint = hint_for("", name);
    throw Error(ExitCode::usage,
                fmt::format("{}: {}: expected a section{}, got {}{}", where, message_text(name),
                            list_of(names, hint), in_quotes(name), hint));
}

const Key& require_key(const std::string& section, const std::string& name,
                       const std::string& where) {
    require_section(section, where);
    if (const Key* key = find_key(section, name)) return *key;
    const std::string hint = hint_for(section, name);
    throw Error(ExitCode::usage,
                fmt::format("{}: {}.{}: expected a key of {}{}, got {}{}", where, section,
                            message_text(name), section, list_of(names_in(section), hint),
                            in_quotes(name), hint));
}

}  // namespace hpcai::config
