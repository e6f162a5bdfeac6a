// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <iosfwd>
#include <string>

#include <hpcai/base/error.hpp>

namespace hpcai::benchmark {

/// The request of `hpcai500 score`.
struct ScoreRequest {
    std::string directory;
    bool allow_partial = false;
};

/// Evaluates the ensemble of a run that has no result from the files of its groups, without MPI and
/// without training. Writes the result as the run would have done and prints its summary to `out`.
/// Holds the predictions of all groups in memory. Returns the verdict's code. Throws and changes
/// nothing: Error(usage) if there is no run, a running one, or one with a result; Error(partial),
/// naming unfinished groups, unless `allow_partial`; Error(all_groups_failed) if none finished.
ExitCode score_run(const ScoreRequest& request, std::ostream& out);

}  // namespace hpcai::benchmark
