// SPDX-License-Identifier: Apache-2.0
#include <hpcai/base/error.hpp>
#include <hpcai/config/keys.hpp>

#include "key_builder.hpp"

namespace hpcai::config {

bool Bounds::contain(double value) const noexcept {
    const bool high_enough = minimum_is_legal ? value >= minimum : value > minimum;
    const bool low_enough = maximum_is_legal ? value <= maximum : value < maximum;
    return high_enough && low_enough;
}

const std::vector<Section>& sections() {
    static const std::vector<Section> table = {
        {"run", "What this run is called, where it writes and how it may be ranked."},
        {"submission",
         "Who hands the result in, and the nine layers of the system in words; a ranking needs all "
         "but contact."},
        {"workload", "What is trained: model, picture format, target quality and length."},
        {"detector", "Sizes of the detector, where workload.model is one."},
        {"bagging", "How many base models there are, what each is trained on and how they vote."},
        {"parallel", "How the ranks of one base model share its training."},
        {"data", "Where the samples come from and how they are prepared."},
        {"training", "The recipe: batch, optimizer, learning rate, regularization and precision."},
        {"communication", "How the ranks of one base model exchange gradients."},
        {"device", "What each rank computes on."},
    };
    return table;
}

const std::vector<Key>& keys() {
    static const std::vector<Key> table = [] {
        std::vector<Key> all;
        for (auto make :
             {run_keys, submission_keys, workload_keys, detector_keys, bagging_keys, parallel_keys,
              data_keys, training_keys, communication_keys, device_keys}) {
            for (Key& key : make()) all.push_back(std::move(key));
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
