// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

#include <hpcai/comm/mpi_world.hpp>

namespace hpcai::launch {

/// Starts MPI, calls `work` and ends MPI. First rejects a process that should be one of several
/// ranks but runs alone (comm::check_launch). Returns the result of `work`, or the code of an Error
/// of `work` or of this check. Rank 0 prints the Error; before MPI_Init, every rank does. Prints
/// any other exception of `work` and ends all ranks. The caller must own objects that have to
/// outlive MPI.
ExitCode run_under_mpi(const std::string& command_line,
                       const std::function<ExitCode(comm::MpiWorld&)>& work);

}  // namespace hpcai::launch
