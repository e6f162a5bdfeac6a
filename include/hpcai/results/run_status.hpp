// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>

#include <hpcai/base/error.hpp>

namespace hpcai::results {

/// The state of a run, from its files.
struct RunStatus {
    std::string text;    // the line of the result or of the repetitions, or a table of the progress
    ExitCode exit_code;  // of the results, else report::exit_code_of(); not ok if runs are missing
    bool is_final;       // true if all results exist or the run has ended or died (is_over())
    bool is_ending = false;  // report::is_ending()
};

/// Reads the state of the run, or of the runs of run.repeat, in `directory`. Checks only the data
/// that it uses. Throws Error(usage) if `directory` has no run, and Error(data) like
/// records::from_json.
RunStatus read_status(const std::filesystem::path& directory);

}  // namespace hpcai::results
