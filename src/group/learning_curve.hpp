// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <hpcai/comm/communicator.hpp>
#include <hpcai/context/run_context.hpp>
#include <hpcai/group/model.hpp>
#include <hpcai/records/run_record.hpp>
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

/// Evaluates the model between two epochs if run.evaluate_epochs asks for it, and adds its quality
/// to the leader's `record`. The run evaluates after the last epoch anyway. Stops the clock and
/// does not change the training. Collective in the group; a failure on one rank is thrown on all.
void evaluate_between(const BetweenEpochs& between, int epochs_done, GroupRecord& record);

/// Adds the quality of the run's evaluation if run.evaluate_epochs asks for a curve.
void end_learning_curve(const context::RunContext& context, GroupResult& result);

}  // namespace hpcai::group
