// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <hpcai/base/log.hpp>
#include <hpcai/comm/communicator.hpp>
#include <hpcai/context/run_context.hpp>
#include <hpcai/data/bad_samples.hpp>
#include <hpcai/group/energy_monitor.hpp>
#include <hpcai/group/model.hpp>
#include <hpcai/records/run_record.hpp>
#include <hpcai/training/step_log.hpp>

#include "gpu_health_monitor.hpp"
#include "group_watch.hpp"
#include "progress_reporter.hpp"
#include "step_times.hpp"

namespace hpcai::group {

struct GroupTraining {
    const context::RunContext& context;
    const context::Resources& resources;
    TrainingState& state;
    comm::Communicator& group;
    comm::Communicator& replicas;  // the ranks with the same stage and shard
    Logger& log;
    TrainingClock& clock;
    training::StepLog& steps;
    EnergyMonitor& energy_monitor;
    GpuHealthMonitor& gpu_health_monitor;
    ProgressReporter& progress;
    GroupWatch& watch;
};

/// Trains all remaining epochs and fills in what `result` states about training. The clock must
/// have started at the end of the start-up. Returns the times of the steps. Throws Error(data) if
/// the bootstrap does not fill one batch. Collective in the group.
StepTimes train(const GroupTraining& training, GroupResult& result);

/// Fills in the number of steps and samples of a training run, complete or not.
void count_steps(const training::StepLog& steps, GroupRecord& record);

/// Logs the first bad samples of a report. `split` is "training" or "validation".
void log_bad_samples(const data::BadSampleReport& report, const char* split, Logger& log);

}  // namespace hpcai::group
