// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include <hpcai/comm/communicator.hpp>

namespace hpcai::comm {

/// Runs `body` on `ranks` ranks that are threads of this process, without MPI, and returns when all
/// have ended. Sums are made in the order of the ranks. What one rank throws ends the others'
/// calls, as announce_failure() does; it is rethrown here, of several what was thrown first.
void run_as_threads(int ranks, const std::function<void(Communicator&)>& body);

}  // namespace hpcai::comm
