// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>

#include <hpcai/base/error.hpp>

namespace hpcai::results {

/// What becomes of a run, by its files.
struct RunStatus {
    std::string text;    // a table of groups, where there is no result, and a line, or that alone
    ExitCode exit_code;  // of the verdict, or report::exit_code_of of what there is
    bool is_final;       // a result, or a run that has stopped
};

/// Of the run, or the runs of run.repeat, in `directory`; only reads, and what it reads it checks
/// only as far as it uses it. Throws Error(usage) where there has been no run, Error(data) as
/// report::from_json and repetitions_from_json.
RunStatus read_status(const std::filesystem::path& directory);

}  // namespace hpcai::results
