// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>

/// The places of a result directory, and the command that resumes its run.
namespace hpcai::benchmark {

/// groups/<group>
std::filesystem::path group_directory(const std::filesystem::path& output, int group);

/// groups/<group>/flight
std::filesystem::path flight_directory(const std::filesystem::path& output, int group);

/// "mpirun -np 4 hpcai500 resume DIR", as one would type it.
std::string resume_command(int ranks, const std::filesystem::path& output);

}  // namespace hpcai::benchmark
