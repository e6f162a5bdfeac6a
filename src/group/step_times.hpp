// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <hpcai/comm/communicator.hpp>
#include <hpcai/comm/gradient_buckets.hpp>
#include <hpcai/context/run_context.hpp>
#include <hpcai/records/run_record.hpp>
#include <hpcai/records/step_record.hpp>
#include <hpcai/training/step_log.hpp>

#include "training_clock.hpp"

namespace hpcai::group {

struct StepTimes {
    std::vector<RankRecord> ranks;  // by group rank
    TimeBreakdownRecord breakdown;
    std::string trace;  // the text of trace.json at the leader; empty without run.trace
};

/// Makes the configured log of this rank's steps. All arguments outlive it.
training::StepLog make_step_log(const config::RunConfig& run, device::Device& device,
                                const TrainingClock& clock, training::FlightRecorder& flight);

/// Returns the seconds per step in which all-reduces over `replicas` ranks overlapped with
/// computation, from this rank's `accounting`; with `is_device_sum` by the device's clock.
Quantity overlapped_seconds_per_step(const comm::BucketAccounting& accounting, int replicas,
                                     bool is_device_sum);

/// Gathers the times of all ranks after training. Collective in the group.
StepTimes gather_step_times(const context::RunContext& context, comm::Communicator& group,
                            const training::StepLog& steps, const Quantity& overlapped_seconds);

/// Writes steps.csv, also of a failed group. Throws as storage does.
void store_steps(const training::StepLog& steps, const std::filesystem::path& directory);

/// Writes ranks.csv and, if there is a trace, trace.json. Throws as storage does.
void store_step_times(const StepTimes& times, const std::filesystem::path& directory);

}  // namespace hpcai::group
