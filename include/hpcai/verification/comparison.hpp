// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include <hpcai/evaluation/statistics.hpp>
#include <hpcai/records/record_fields.hpp>

namespace hpcai::verification {

/// A setting or a fact that two results have with different values; empty where one lacks it.
struct SettingDifference {
    std::string key;
    std::string first;
    std::string second;
};

using evaluation::Judgement;

struct MetricComparison {
    std::string key;   // as in result.json
    std::string unit;  // may be empty
    Quantity first;
    Quantity second;
    Judgement judgement = Judgement::unclear;
    std::string why;  // the statistics, in a line
};

struct Comparison {
    std::string first;                           // the results' names
    std::string second;                          // likewise
    std::vector<SettingDifference> settings;     // keys of the configuration
    std::vector<SettingDifference> environment;  // and how many ranks and nodes there were
    std::vector<MetricComparison> metrics;
    std::vector<std::string> warnings;  // results that do not agree with their manifests
};

}  // namespace hpcai::verification
