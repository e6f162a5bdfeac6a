// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <iosfwd>
#include <string>

#include <hpcai/base/error.hpp>

namespace hpcai::benchmark {

/// What the command line asks for.
struct ScoreRequest {
    std::string directory;
    bool allow_partial = false;
};

/// Ends a run that has no result, by the files of its groups, without MPI and without training:
/// those that have finished vote, the result is written as the run would have written it, and its
/// summary printed to `out`. Holds the predictions of all groups in memory. Returns the verdict's
/// code. Throws Error(usage) where there is no run, one at work, or one with a result,
/// Error(partial) naming the groups that have not finished unless `allow_partial`, and
/// Error(all_groups_failed) where none has; then nothing is changed.
ExitCode score_run(const ScoreRequest& request, std::ostream& out);

}  // namespace hpcai::benchmark
