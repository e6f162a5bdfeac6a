// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include <hpcai/evaluation/statistics.hpp>
#include <hpcai/records/record_fields.hpp>

namespace hpcai::verification {

using evaluation::Judgement;

/// A setting or fact that differs between two results; a text is empty if its result has no value.
struct SettingDifference {
    std::string key;
    std::string first;
    std::string second;
};

struct MetricComparison {
    std::string key;   // as in result.json
    std::string unit;  // may be empty
    Quantity first;
    Quantity second;
    Judgement judgement = Judgement::unclear;
    std::string why;              // the statistics that led to the judgement, in one line
    bool is_within_runs = false;  // the judgement is by the spread of steps, not between runs
};

struct Comparison {
    std::string first;                           // name and directory of the first run
    std::string second;                          // name and directory of the second run
    std::vector<SettingDifference> settings;     // keys of the configuration
    std::vector<SettingDifference> environment;  // including the numbers of ranks and nodes
    std::vector<MetricComparison> metrics;
    std::vector<std::string> warnings;  // different work, files that differ from the manifest
};

/// Returns "SAME", "FASTER", "SLOWER", "BETTER", "WORSE", "MORE", "LESS" or "UNCLEAR".
std::string_view word_of(Judgement judgement);

/// Compares the result in `second` with the result in `first` by the statistics of docs/METRICS.md
/// ("Comparison"). Each may also be the directory of a series (run.repeat). Checks files only
/// against the manifests; differences become one warning per run. Throws as require_result() if
/// a directory has no result, and Error(data) for files that cannot be read.
Comparison compare(const std::filesystem::path& first, const std::filesystem::path& second);

std::string to_text(const Comparison& comparison);
std::string to_json(const Comparison& comparison);

}  // namespace hpcai::verification
