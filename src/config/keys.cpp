// SPDX-License-Identifier: Apache-2.0
#include <hpcai/base/error.hpp>
#include <hpcai/config/keys.hpp>

#include "section_keys.hpp"

namespace hpcai::config {
namespace {

/// A section and the functions that make its keys, in the order in which they are printed.
struct SectionRows {
    Section section;
    std::vector<std::vector<Key> (*)()> makers;
};

std::vector<SectionRows> table_of_sections() {
    return {
        {{"run", "What this run is called, where it writes and how it may be ranked."},
         {run_keys, run_lifecycle_keys}},
        {{"submission",
          "Who hands the result in, and the nine layers of the system in words; a ranking needs "
          "all but contact."},
         {submission_keys}},
        {{"workload", "What is trained: model, picture format, target quality and length."},
         {workload_keys}},
        {{"detector", "Sizes of the detector, where workload.model is one."}, {detector_keys}},
        {{"bagging", "How many base models there are, what each is trained on and how they vote."},
         {bagging_keys}},
        {{"parallel", "How the ranks of one base model share its training."}, {parallel_keys}},
        {{"data", "Where the samples come from and how they are prepared."},
         {data_source_keys, data_preparation_keys, data_feeding_keys}},
        {{"training", "The recipe: batch, optimizer, learning rate, regularization and precision."},
         {batch_and_rate_keys, optimizer_keys, engine_keys}},
        {{"communication", "How the ranks of one base model exchange gradients."},
         {communication_keys}},
        {{"device", "What each rank computes on."}, {device_keys}},
    };
}

}  // namespace

bool Bounds::contain(double value) const noexcept {
    const bool high_enough = minimum_is_legal ? value >= minimum : value > minimum;
    const bool low_enough = maximum_is_legal ? value <= maximum : value < maximum;
    return high_enough && low_enough;
}

const std::vector<Section>& sections() {
    static const std::vector<Section> table = [] {
        std::vector<Section> all;
        for (const SectionRows& rows : table_of_sections()) all.push_back(rows.section);
        return all;
    }();
    return table;
}

const std::vector<Key>& keys() {
    static const std::vector<Key> table = [] {
        std::vector<Key> all;
        for (const auto& [section, makers] : table_of_sections()) {
            for (const auto make : makers) {
                for (Key& key : make()) {
                    key.section = section.name;
                    all.push_back(std::move(key));
                }
            }
        }
        return all;
    }();
    return table;
}

const Section* find_section(std::string_view name) {
    for (const Section& section : sections()) {
        if (section.name == name) return &section;
    }
    return nullptr;
}

const Key* find_key(std::string_view section, std::string_view name) {
    for (const Key& key : keys()) {
        if (key.section == section && key.name == name) return &key;
    }
    return nullptr;
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

}  // namespace hpcai::config
