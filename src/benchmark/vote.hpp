// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <hpcai/base/run_record.hpp>
#include <hpcai/comm/communicator.hpp>
#include <hpcai/evaluation/ensemble.hpp>

#include "group_job.hpp"
#include "start.hpp"

namespace hpcai::benchmark {

/// What the ensemble predicts; whole at the leaders' rank 0, elsewhere without content.
struct Vote {
    std::vector<GroupResult> members;  // of the groups that vote, in order
    std::vector<float> probabilities;  // (samples, classes) by bagging.aggregation
    std::vector<std::int32_t> labels;  // (samples)
    evaluation::TopK ensemble;         // by bagging.aggregation
    evaluation::TopK majority;
    evaluation::OutOfBagQuality out_of_bag;
    double seconds = 0;
};

/// Combines the predictions of the `leaders` of the groups that finished. Collective among them.
Vote hold_vote(const Start& start, const GroupOutcome& mine, comm::Communicator& leaders);

}  // namespace hpcai::benchmark
