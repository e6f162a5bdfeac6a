// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include <hpcai/base/log.hpp>
#include <hpcai/comm/communicator.hpp>
#include <hpcai/context/run_context.hpp>
#include <hpcai/group/completed_group.hpp>
#include <hpcai/group/model.hpp>

namespace hpcai::group {

/// Opens the log of a rank. Warnings and errors go to standard error; a leader logs everything to
/// groups/<m>/log.txt. Throws Error(usage) if the file cannot be opened.
std::unique_ptr<Logger> open_group_log(const context::RunContext& context);

/// Trains this rank's model with its group, evaluates it and stores the results in groups/<m>/
/// (weights, predictions, record). If an earlier launch completed the group, loads its record and
/// predictions instead. Training sets state.reducer. Never throws: a failure becomes the status of
/// the outcome. Collective in the group.
GroupOutcome run_group(const context::RunContext& context, const context::Resources& resources,
                       TrainingState& state, comm::Communicator& group, Logger& log);

}  // namespace hpcai::group
