// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <hpcai/benchmark/run_request.hpp>
#include <hpcai/comm/mpi_world.hpp>
#include <hpcai/config/config.hpp>
#include <hpcai/device/cpu_device.hpp>

#include "run_context.hpp"

namespace hpcai::benchmark {

/// Rank 0 reads and checks the file, or takes the defaults where the request has none; the others
/// get its effective form, so that no rank can see another configuration. Collective.
config::Config agree_on_config(const RunRequest& request, comm::Communicator& everyone);

/// Ranks of this rank's node that may use the same cores, itself among them. Collective.
int ranks_sharing_cores(const std::vector<int>& node_of_world_rank, const device::Cores& cores,
                        comm::Communicator& everyone);

/// Agrees on the configuration (read by rank 0 for the first run of `series`, which keeps it), the
/// layout (eq. 5), the data and the devices. Each run has a seed of its own, one above the last. A
/// run that is resumed has the configuration and the ranks of its directory; Error(launch), with
/// the right command line, where there are other ranks, and where they run other programs.
/// Writes nothing but the copies that data.staging asks for. Throws Error(usage) when the result
/// directory is there and not empty. Collective; a failure on one rank is thrown on all.
Start agree_on_start(const RunRequest& request, comm::StartUp& start_up, Series& series);

}  // namespace hpcai::benchmark
