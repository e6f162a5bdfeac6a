// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include <hpcai/base/error.hpp>

namespace hpcai::benchmark {

/// What the command line asks for.
struct RunRequest {
    std::string config_path;
    std::vector<std::string> overrides;  // "section.key=value"
    std::string output;                  // directory; empty: run.output, else results/<name>-<UTC>
    std::string command_line;            // for the environment's record
    std::string resume = {};  // result directory of a run to go on with; then nothing above it
};

/// One run of the benchmark, from start to verdict, as one rank of it: configuration, layout,
/// bootstrap, training, vote, score, result directory. Initialises and ends MPI. The leader that
/// writes the result prints the summary to `out`; progress and warnings go to standard error.
/// Returns the verdict's exit code; never throws: a failure is printed once and returned.
ExitCode run_benchmark(const RunRequest& request, std::ostream& out);

}  // namespace hpcai::benchmark
