// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <hpcai/context/run_context.hpp>
#include <hpcai/graph/graph.hpp>
#include <hpcai/search/history.hpp>

#include "group_training.hpp"
#include "trial_run.hpp"

/// The files of a group's trials, which only the leader writes.
namespace hpcai::group {

/// Stores the weights and predictions of a trial that was trained, and completes its record. `root`
/// is the graph of the search's root. Throws Error(usage) naming a file that cannot be written.
void store_trial(const GroupTraining& training, const TrialRun& run, const graph::Graph& root,
                 FinishedTrial& trial);

/// Removes the weights of a trial of the own group unless it may become a parent or is the best.
void remove_weights(const context::RunContext& context, const search::History& own, int sequence);
/// Calls remove_weights() for the trial that has just become too old to be a parent.
void remove_oldest_weights(const context::RunContext& context, const search::History& own);

}  // namespace hpcai::group
