// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <hpcai/comm/mpi_world.hpp>

namespace hpcai::launch {

/// Compares the program's file and the MPI library of all ranks. Throws Error(launch), on all
/// ranks, naming those that have another one and their hosts. Returns the SHA-256 of this rank's
/// file, or "unreadable". Collective.
std::string check_programs(comm::StartUp& start_up);

}  // namespace hpcai::launch
