// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include <mpi.h>

#include <hpcai/comm/communicator.hpp>

#include "channel.hpp"

namespace hpcai::comm {

/// Makes a Communicator over MPI that owns `owned`. After a failure `kept` holds the memory of
/// pending operations.
std::unique_ptr<Communicator> make_mpi_communicator(MPI_Comm owned, const WorldLimits& limits,
                                                    std::shared_ptr<KeptBuffers> kept);

}  // namespace hpcai::comm
