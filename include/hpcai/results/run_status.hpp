// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>

#include <hpcai/base/error.hpp>

namespace hpcai::results {

/// The state of a run, from its files.
struct RunStatus {
    std::string text;    // the result line; without a result, progress_table()
    ExitCode exit_code;  // of the verdict, or report::exit_code_of without a result
    bool is_final;       // whether the run has a result or has stopped
};

/// Reads the state of the run, or of the runs of run.repeat, in `directory`. Checks the files only
/// as far as it uses them. Throws Error(usage) if there was no run, Error(data) as
/// records::from_json.
RunStatus read_status(const std::filesystem::path& directory);

}  // namespace hpcai::results
