// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <iosfwd>

#include <hpcai/base/error.hpp>
#include <hpcai/context/run_request.hpp>

namespace hpcai::benchmark {

/// One run of the benchmark, from start to verdict, as one rank of it: configuration, layout,
/// bootstrap, training, vote, score, result directory. Initialises and ends MPI. The leader that
/// writes the result prints the summary to `out`; progress and warnings go to standard error.
/// Returns the verdict's exit code; never throws: a failure is printed once and returned.
ExitCode run_benchmark(const context::RunRequest& request, std::ostream& out);

}  // namespace hpcai::benchmark
