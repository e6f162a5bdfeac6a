// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <hpcai/records/progress_record.hpp>
#include <hpcai/records/run_record.hpp>
#include <hpcai/records/trial_record.hpp>
#include <hpcai/storage/strict_json.hpp>

namespace hpcai::records {

using Place = storage::JsonLocation;

/// Throws Error(data) with the key if values are out of range or contradict each other.
void check(const RunRecord& record, const Place& place);
void check(const LaunchRecord& launch, const Place& place);
void check(const GroupResult& result, const Place& place);
void check(const RooflineRecord& record, const Place& place);
void check(const ProgressRecord& progress, const Place& place);
void check(const ProposedTrial& trial, const Place& place);
void check(const FinishedTrial& trial, const Place& place);
/// Accepts every record of another type.
void check(const auto& /*record*/, const Place& /*place*/) {}

}  // namespace hpcai::records
