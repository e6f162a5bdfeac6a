// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

#include <hpcai/comm/mpi_world.hpp>

namespace hpcai::launch {

/// Starts MPI, calls `work` and ends MPI. Before `work` it rejects a process that should be one of
/// several ranks but runs alone (comm::check_launch). Returns the result of `work` or the code of
/// its Error, which rank 0 (before MPI_Init every rank) prints. Any other exception of `work` is
/// printed and ends all ranks. Objects that must outlive MPI must be owned by the caller.
ExitCode run_under_mpi(const std::string& command_line,
                       const std::function<ExitCode(comm::MpiWorld&)>& work);

}  // namespace hpcai::launch
