// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include <hpcai/config/config.hpp>
#include <hpcai/records/run_record.hpp>
#include <hpcai/workloads/inspector.hpp>

namespace hpcai::workloads {

/// "groups/3/".
std::string group_prefix(int group);

/// Checks the stored predictions of the members, and those of the ensemble that follow from them.
class PredictionCheck {
public:
    virtual ~PredictionCheck() = default;
    /// Judges what `group` has stored, as `result`, and keeps it for the vote.
    virtual void add_member(int group, GroupResult& result) = 0;
    /// Combines the members, compares that with what is stored and judges it, as `quality`. Its
    /// metric is the workload's.
    virtual void finish(QualityRecord& quality) = 0;
};

/// The result directory whose predictions are checked. The inspector and the configuration outlive
/// the check.
struct CheckedResult {
    const config::Config& config;
    std::int64_t samples = 0;  // test samples
    Inspector& inspector;
};

}  // namespace hpcai::workloads
