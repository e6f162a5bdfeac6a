// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include <hpcai/base/error.hpp>

namespace hpcai::cli {

/// Runs the command line; `arguments` follow the program's name, and results are written to `out`.
/// Only run, resume, doctor and a roofline of several ranks start MPI. Throws Error(usage), with
/// the nearest legal name, for unknown arguments, and the errors of the command.
ExitCode run_program(const std::vector<std::string>& arguments, std::ostream& out);

}  // namespace hpcai::cli
