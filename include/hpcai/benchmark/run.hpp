// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <iosfwd>

#include <hpcai/base/error.hpp>
#include <hpcai/context/run_request.hpp>

namespace hpcai::benchmark {

/// Executes one rank of a run: configuration, layout, bootstrap, training, vote, score and result
/// directory. Initializes and ends MPI. The leader that writes the result prints the summary to
/// `out`; progress and warnings go to standard error. Returns the verdict's exit code. Prints a
/// failure once and returns its code; never throws.
ExitCode run_benchmark(const context::RunRequest& request, std::ostream& out);

}  // namespace hpcai::benchmark
