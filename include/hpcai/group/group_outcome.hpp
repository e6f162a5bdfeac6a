// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <hpcai/comm/membership_agreement.hpp>
#include <hpcai/records/progress_record.hpp>
#include <hpcai/records/run_record.hpp>
#include <hpcai/workloads/evaluator.hpp>

namespace hpcai::group {

/// The outcome of a group's training on one rank. Only the leader has predictions.
struct GroupOutcome {
    comm::GroupStatus status;
    GroupResult result;
    workloads::MemberPredictions predictions;
    bool has_lost_leader = false;   // the group's first rank does not answer
    bool is_acting_leader = false;  // the leader is lost, and this rank is the first that answers
    ProgressState end = ProgressState::failed;
    double stop_seconds = 0;  // from the last step to the end of the stop; 0: no stop
};

}  // namespace hpcai::group
