// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <iosfwd>
#include <string>

#include <hpcai/results/record.hpp>

#include "ensemble_result.hpp"

namespace hpcai::benchmark {

struct WrittenResult {
    RunRecord record;
    std::string manifest;  // its SHA-256
};

/// Scores the run and writes all files of its result, the summary last. Prints the summary to `out`
/// even if the files could not be written; then throws Error(usage).
WrittenResult write_result(const results::LaunchedRun& run, const EnsembleResult& ensemble,
                           const results::Closing& closing, std::ostream& out);

}  // namespace hpcai::benchmark
