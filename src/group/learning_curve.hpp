// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <hpcai/base/run_record.hpp>
#include <hpcai/comm/communicator.hpp>
#include <hpcai/context/run_context.hpp>
#include <hpcai/group/model.hpp>
#include <hpcai/training/trainer.hpp>

#include "training_clock.hpp"

namespace hpcai::group {

/// A training between two epochs.
struct BetweenEpochs {
    const context::RunContext& context;
    const context::Resources& resources;
    Model& model;
    comm::Communicator& group;
    training::Trainer& trainer;
    TrainingClock& clock;
    const training::StepLog& steps;
};

/// Adds to `record`, at the leader, what the model is worth after so many epochs, where
/// run.evaluate_epochs asks for it; behind the last epoch the evaluation of the run says so. The
/// clock stands still and every bit of the training stays. Collective in the group; a failure on
/// one rank is thrown on all.
void evaluate_between(const BetweenEpochs& between, int epochs_done, GroupRecord& record);

/// Adds the quality of the run's evaluation, where run.evaluate_epochs asks for a curve.
void end_learning_curve(const context::RunContext& context, GroupResult& result);

}  // namespace hpcai::group
