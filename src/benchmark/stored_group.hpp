// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include <hpcai/base/log.hpp>
#include <hpcai/comm/communicator.hpp>

#include "base_model.hpp"
#include "group_outcome.hpp"
#include "run_context.hpp"

/// Groups that an earlier program of the run has finished.
namespace hpcai::benchmark {

/// Gives the outcome of such a group, of which the result is there, what its files have of its
/// predictions; none out of bag. Throws Error(data) naming a file that does not fit, and where the
/// model is not worth on the test samples what its record says: these have been changed.
void load_predictions(const Start& start, GroupOutcome& outcome);

/// The outcome of such a group, for the vote: predictions are those of its files, those out of bag
/// are made again from its weights. Nothing where it has not finished, as the log says. Collective
/// in the group; a failure on one rank is thrown on all.
std::optional<GroupOutcome> take_finished_group(const Start& start, BaseModel& model,
                                                comm::Communicator& group, Logger& log);

/// Which training samples are not in the bootstrap of the model, and what it says of them.
/// Collective in the group.
void predict_out_of_bag(const Start& start, BaseModel& model, comm::Communicator& group,
                        GroupOutcome& outcome);

}  // namespace hpcai::benchmark
