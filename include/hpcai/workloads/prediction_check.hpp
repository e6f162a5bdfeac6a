// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include <hpcai/config/config.hpp>
#include <hpcai/records/run_record.hpp>
#include <hpcai/workloads/inspector.hpp>

namespace hpcai::workloads {

/// Returns the group's folder, such as "groups/3/".
std::string group_prefix(int group);

/// Checks the stored predictions of the members and of the ensemble that combines them.
class PredictionCheck {
public:
    virtual ~PredictionCheck() = default;
    /// Scores the stored predictions of `group` and writes the scores to `result`. finish()
    /// combines the predictions of all groups that were added.
    virtual void add_member(int group, GroupResult& result) = 0;
    /// Combines the members, compares the result with the stored ensemble, and writes the
    /// ensemble's scores to `quality`, whose metric must be of the workload's kind.
    virtual void finish(QualityRecord& quality) = 0;
};

/// A result directory to check. The inspector and the configuration must outlive the check.
struct CheckedResult {
    const config::Config& config;
    std::int64_t samples = 0;  // test samples
    Inspector& inspector;
};

}  // namespace hpcai::workloads
