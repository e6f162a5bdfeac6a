// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include <hpcai/base/log.hpp>
#include <hpcai/comm/communicator.hpp>
#include <hpcai/comm/gradient_reducer.hpp>

#include "base_model.hpp"
#include "group_outcome.hpp"
#include "run_context.hpp"

namespace hpcai::benchmark {

/// Trains this rank's model with its group, evaluates it and stores what came of it in
/// groups/<m>/ (weights, predictions, record). Never throws: a failure becomes the status. Makes
/// `reducer`, which outlives MPI like the model. Collective in the group.
GroupOutcome run_group(const Start& start, BaseModel& model, comm::Communicator& group,
                       std::unique_ptr<comm::GradientReducer>& reducer, Logger& log);

}  // namespace hpcai::benchmark
