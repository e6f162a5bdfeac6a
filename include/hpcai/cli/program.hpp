// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include <hpcai/base/error.hpp>

namespace hpcai::cli {

/// Does what the command line asks for; `arguments` are those after the program's name, results go
/// to `out`. Only the command `run` starts MPI. Throws Error(usage), naming the nearest legal name,
/// for arguments that no command takes, and whatever the command throws.
ExitCode run_program(const std::vector<std::string>& arguments, std::ostream& out);

}  // namespace hpcai::cli
