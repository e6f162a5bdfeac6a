// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <hpcai/base/run_record.hpp>
#include <hpcai/comm/end_game.hpp>

#include "start.hpp"
#include "vote.hpp"

namespace hpcai::benchmark {

/// What the record needs beside the start and the vote.
struct Closing {
    const RunRequest& request;
    const std::vector<comm::GroupStatus>& groups;  // all M
    double startup_seconds = 0;
    double total_seconds = 0;
};

/// The record of the run, score and verdict included. `vote` has no members when no group
/// finished.
RunRecord make_record(const Start& start, const Vote& vote, const Closing& closing);

}  // namespace hpcai::benchmark
