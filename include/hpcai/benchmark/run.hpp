// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <iosfwd>
#include <string>

#include <hpcai/base/error.hpp>
#include <hpcai/context/run_context.hpp>

namespace hpcai::benchmark {

/// Executes one rank of a run, or of the runs of run.repeat: configuration, layout, bootstrap,
/// training, ensemble, score and result directory. Initializes and finalizes MPI. The leader that
/// writes the result prints the summary to `out` and returns the exit code of the verdict; after
/// several runs, the worst of their codes (docs/METRICS.md). Progress and warnings go to standard
/// error. Throws Error(usage) if training::kFaultsVariable, which injects faults, is invalid.
/// Prints any other failure once and returns its code.
ExitCode run_benchmark(const context::RunRequest& request, std::ostream& out);

/// The request of `hpcai500 score`.
struct ScoreRequest {
    std::string directory;
    bool allow_partial = false;
};

/// Evaluates the ensemble of a run that ended without a result, from the files of its groups and
/// without MPI. Writes the run's result, without start-up time, total time and out-of-bag quality,
/// and prints its summary to `out`. Holds all predictions in memory. Returns the verdict's code.
/// Throws before it changes a file: Error(usage) if the directory has no run, or a run that is
/// running or has a result; Error(data) for damaged files or changed samples; Error(partial),
/// naming up to eight unfinished groups, unless `allow_partial`; Error(all_groups_failed) if no
/// group finished. Throws Error(mismatch) and writes no record if `verify` would reject the record.
ExitCode score_run(const ScoreRequest& request, const std::string& command_line, std::ostream& out);

}  // namespace hpcai::benchmark
