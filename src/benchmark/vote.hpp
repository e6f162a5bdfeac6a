// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <hpcai/base/run_record.hpp>
#include <hpcai/comm/communicator.hpp>

#include "group_outcome.hpp"
#include "workload.hpp"

namespace hpcai::benchmark {

/// What the groups that finished come to together; whole at the leaders' rank 0, elsewhere without
/// content.
struct Vote {
    std::vector<GroupResult> members;  // of the groups that vote, in order
    EnsemblePredictions predictions;
    QualityRecord quality = no_quality("no group finished");  // of the ensemble
    double seconds = 0;
};

/// Combines the predictions of the `leaders` of the groups that finished. Collective among them.
Vote hold_vote(const Workload& workload, const GroupOutcome& mine, comm::Communicator& leaders);

}  // namespace hpcai::benchmark
