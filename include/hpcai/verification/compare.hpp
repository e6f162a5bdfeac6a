// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include <hpcai/base/run_record.hpp>

namespace hpcai::verification {

/// A setting or a fact that two results have with different values; empty where one lacks it.
struct SettingDifference {
    std::string key;
    std::string first;
    std::string second;
};

/// What can be said of the second result against the first.
enum class Judgement { same, faster, slower, better, worse, unclear };

std::string_view word_of(Judgement judgement);

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

/// The result in `second` against that in `first`, by the statistics of docs/METRICS.md
/// ("Comparison"); either may be the directory of several runs. Files are checked against the
/// manifests, and what does not agree is told and compared; nothing is verified beyond. Throws
/// Error(usage) where one is no result directory, Error(data) for files that cannot be read.
Comparison compare(const std::filesystem::path& first, const std::filesystem::path& second);

std::string to_text(const Comparison& comparison);
std::string to_json(const Comparison& comparison);

}  // namespace hpcai::verification
