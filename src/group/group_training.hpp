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
#include "predict.hpp"
#include "progress_reporter.hpp"
#include "resumable_record.hpp"
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

/// Returns the set-up of a Trainer of this rank's model, without a pipeline. It injects the faults
/// that the environment requests. The arguments and the model outlive it.
training::TrainerSetup trainer_setup(const GroupTraining& training, const config::Config& config,
                                     std::int64_t steps_per_epoch,
                                     training::StepCallback& callback);

/// Trains all remaining epochs and fills in what `result` states about training. The clock must
/// have started at the end of the start-up. Returns the times of the steps. Throws Error(data) if
/// the bootstrap sample does not fill one batch. Collective in the group.
StepTimes train(const GroupTraining& training, GroupResult& result);

/// Predicts `samples` with the model that `trainer` trains and averaged running statistics. Does
/// not change the training. Collective in the group; all ranks throw if one fails.
Evaluation predict_in_training(const GroupTraining& training, training::Trainer& trainer,
                               std::shared_ptr<const data::SampleSet> samples);

/// What the models that a group has trained cost together.
struct TrainingTotals {
    TrainingCosts costs;
    std::int64_t buckets = 0;           // buckets per step of the model with the most
    std::int64_t gradient_bytes = 0;    // this rank's gradients of the largest model
    double flops = 0;                   // of training, by metrics::kOfficialLedger; at the leader
    data::BadSampleReport bad_samples;  // in training
};

/// Ends the measurements of all ranks and adds them to `result`. Call it after the last step.
/// Returns the times of the steps. Collective in the group.
StepTimes gather_measurements(const GroupTraining& training, const TrainingTotals& totals,
                              GroupResult& result);

/// Fills in the number of steps and samples of a training run, complete or not.
void count_steps(const training::StepLog& steps, GroupRecord& record);

/// Logs the first bad samples of a report. `split` is "training", "validation" or "hold-out".
void log_bad_samples(const data::BadSampleReport& report, const char* split, Logger& log);

}  // namespace hpcai::group
