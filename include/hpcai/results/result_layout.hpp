// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>

/// The places of a result directory, and the command that resumes its run.
namespace hpcai::results {

/// Returns groups/<group> in a result directory.
std::filesystem::path group_directory(const std::filesystem::path& output, int group);

/// Returns groups/<group>/flight, the folder of flight records.
std::filesystem::path flight_directory(const std::filesystem::path& output, int group);

/// Returns the command that resumes the run, such as "mpirun -np 4 hpcai500 resume DIR".
std::string resume_command(int ranks, const std::filesystem::path& output);

}  // namespace hpcai::results
