// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <iosfwd>
#include <string>

#include <hpcai/comm/communicator.hpp>
#include <hpcai/group/group_outcome.hpp>
#include <hpcai/results/record.hpp>

namespace hpcai::benchmark {

/// Combines the predictions of the `leaders` of the finished groups. The result is complete at rank
/// 0 and empty elsewhere. Collective among the leaders.
results::EnsembleResult combine_members(const workloads::Evaluator& evaluator,
                                        const group::GroupOutcome& mine,
                                        comm::Communicator& leaders);

struct WrittenResult {
    RunRecord record;
    std::string manifest;  // the SHA-256 of manifest.sha256
};

/// Scores the run and writes all files of its result, the summary last. If the files cannot be
/// written, prints the summary to `out` all the same and throws Error(usage).
WrittenResult write_result(const results::LaunchedRun& run, const results::EnsembleResult& ensemble,
                           const results::RunOutcome& outcome, std::ostream& out);

}  // namespace hpcai::benchmark
