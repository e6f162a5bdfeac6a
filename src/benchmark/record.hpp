// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <hpcai/base/run_record.hpp>
#include <hpcai/comm/end_game.hpp>

#include "run_context.hpp"
#include "vote.hpp"

namespace hpcai::benchmark {

/// What the record needs beside the start and the vote.
struct Closing {
    const std::vector<comm::GroupStatus>& groups;  // all M
    Quantity startup_seconds;                      // with staging
    Quantity total_seconds;
};

/// Where the ranks of a run are.
TopologyRecord describe_topology(const Start& start);

/// The record of the run, score and verdict included. `vote` has no members when no group
/// finished.
RunRecord make_record(const Start& start, const Vote& vote, const Closing& closing);

}  // namespace hpcai::benchmark
