// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include <hpcai/base/log.hpp>
#include <hpcai/comm/communicator.hpp>
#include <hpcai/context/run_context.hpp>
#include <hpcai/group/group_outcome.hpp>
#include <hpcai/group/training_state.hpp>

/// Groups that an earlier launch of the run completed.
namespace hpcai::group {

/// Adds the stored predictions of a completed group to `outcome`, which has its result. Predictions
/// of out-of-bag samples are not stored. Decodes with the threads of a rank with `threads` host
/// threads. Throws Error(data) naming a file that does not fit, also where the test samples have
/// changed so that the model's quality differs from its record.
void load_predictions(const context::RunContext& context, const data::SampleSets& samples,
                      int threads, GroupOutcome& outcome);

/// Returns the outcome of such a group for the vote. Out-of-bag samples are predicted again from
/// its weights. Returns nothing, and logs why, where the group is not complete. Collective in the
/// group; a failure on one rank is thrown on all.
std::optional<GroupOutcome> load_completed_group(const context::RunContext& context,
                                                 const context::Resources& resources,
                                                 TrainingState& state, comm::Communicator& group,
                                                 Logger& log);

/// Finds the training samples that are not in the bootstrap of the model and predicts them.
/// Collective in the group.
void predict_out_of_bag(const context::RunContext& context, const context::Resources& resources,
                        Model& model, comm::Communicator& group, GroupOutcome& outcome);

}  // namespace hpcai::group
