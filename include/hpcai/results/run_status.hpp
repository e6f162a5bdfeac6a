// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>

#include <hpcai/base/error.hpp>

namespace hpcai::results {

/// The state of a run, from its files.
struct RunStatus {
    std::string text;    // result_line(), progress_table() without a result, or repetitions_line()
    ExitCode exit_code;  // of the verdict, of report::exit_code_of(), or of all repetitions
    bool is_final;       // with a result, if report::is_over(), or if no repetition follows
};

/// Reads the state of the run, or of the runs of run.repeat, in `directory`. Checks the files only
/// as far as it uses them. Throws Error(usage) if there was no run, Error(data) as
/// records::from_json.
RunStatus read_status(const std::filesystem::path& directory);

}  // namespace hpcai::results
