// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <hpcai/records/run_record.hpp>

#include "group_training.hpp"

namespace hpcai::group {

/// Searches an architecture: trains one trial after the other until search.trials or
/// search.duration_seconds ends the search, and stores each in the group's history. Then
/// `training.state` has the model of the best trial with its trained weights. Fills in what
/// `result` states about training. The clock must have started at the end of the start-up. Returns
/// the times of the steps of all trials. Throws the errors of TrialProposals and of the Trainer.
/// Collective in the group.
StepTimes run_search(const GroupTraining& training, GroupResult& result);

}  // namespace hpcai::group
