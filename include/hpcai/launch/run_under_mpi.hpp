// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

#include <hpcai/comm/mpi_world.hpp>

namespace hpcai::launch {

/// Starts MPI, calls `work` and ends MPI; checks before that ranks which a launcher meant to be
/// several are not each alone. Returns what `work` does, or the code of its failure, which is
/// printed once. What `work` must leave to outlive MPI is to be its caller's.
ExitCode run_under_mpi(const std::string& command_line,
                       const std::function<ExitCode(comm::MpiWorld&)>& work);

}  // namespace hpcai::launch
