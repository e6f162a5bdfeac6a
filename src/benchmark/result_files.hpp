// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <iosfwd>
#include <string>

#include "record.hpp"
#include "run_context.hpp"

namespace hpcai::benchmark {

struct WrittenResult {
    RunRecord record;
    std::string manifest;  // its SHA-256
};

/// Scores the run, writes all files of its result, the summary last, and prints that to `out`,
/// whether the files could be written or not. Throws Error(usage) where they could not.
WrittenResult write_result(const Start& start, const Vote& vote, const Closing& closing,
                           std::ostream& out);

}  // namespace hpcai::benchmark
