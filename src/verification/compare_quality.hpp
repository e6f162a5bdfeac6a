// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

#include <hpcai/config/config.hpp>
#include <hpcai/records/run_record.hpp>
#include <hpcai/verification/comparison.hpp>

namespace hpcai::verification {

/// One of two results that are compared.
struct StoredResult {
    std::filesystem::path directory;
    RunRecord record;
    config::Config config;
};

/// quality.ensemble of the second against the first: a paired test where both were judged by the
/// same labels, else by whether their intervals lie apart.
MetricComparison compare_quality(const StoredResult& first, const StoredResult& second);

}  // namespace hpcai::verification
