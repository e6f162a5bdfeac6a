// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <vector>

#include <hpcai/config/config.hpp>
#include <hpcai/records/metric_record.hpp>

namespace hpcai::workloads {

/// Returns the pairs of classes that the ensemble of a classifier confuses most, at most 10, from
/// the files in the folder `evaluation`. A class is named by its number and the folder of its first
/// sample. Empty for other tasks and for missing or damaged files.
std::vector<ConfusionRecord> find_confusions(const config::WorkloadConfig& workload,
                                             const std::filesystem::path& evaluation);

}  // namespace hpcai::workloads
