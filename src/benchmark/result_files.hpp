// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <iosfwd>

#include <hpcai/comm/communicator.hpp>
#include <hpcai/group/completed_group.hpp>
#include <hpcai/results/record.hpp>

namespace hpcai::benchmark {

/// Combines the predictions of the finished groups; `member` is the outcome of this leader's group.
/// The result is complete on rank 0 of `leaders` only. Collective over `leaders`.
results::EnsembleResult combine_members(const workloads::Evaluator& evaluator,
                                        const group::GroupOutcome& member,
                                        comm::Communicator& leaders);

/// The launch that wrote the members' files. With stored_groups it was an earlier launch, and the
/// files may have changed since.
enum class Origin { this_run, stored_groups };

/// Scores the run and writes all files of its result, the manifest last, because it marks a
/// complete result. Prints the summary to results::text_stream(); with this_run, also if writing
/// fails. Returns the record. Throws Error(usage) if writing fails and, with stored_groups,
/// Error(mismatch) if `verify` would reject the result.
RunRecord write_result(const results::LaunchedRun& run, const results::EnsembleResult& ensemble,
                       const results::RunOutcome& outcome, Origin origin, std::ostream& out);

}  // namespace hpcai::benchmark
