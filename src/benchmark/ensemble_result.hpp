// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <hpcai/comm/communicator.hpp>
#include <hpcai/group/group_outcome.hpp>
#include <hpcai/results/record.hpp>
#include <hpcai/workloads/evaluator.hpp>

namespace hpcai::benchmark {

/// What the groups that finished predict together. Complete at the leaders' rank 0, empty
/// elsewhere.
struct EnsembleResult {
    results::EnsembleScore score;
    workloads::EnsemblePredictions predictions;
};

/// Combines the predictions of the `leaders` of the groups that finished. Collective among them.
EnsembleResult combine_members(const workloads::Evaluator& evaluator,
                               const group::GroupOutcome& mine, comm::Communicator& leaders);

}  // namespace hpcai::benchmark
