// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <hpcai/comm/mpi_world.hpp>
#include <hpcai/config/config.hpp>
#include <hpcai/context/run_context.hpp>
#include <hpcai/device/cpu_device.hpp>
#include <hpcai/records/launch_record.hpp>
#include <hpcai/storage/file_lock.hpp>

namespace hpcai::launch {

/// Returns config::load(sources) of rank 0 on all ranks. Collective; all ranks throw its error.
config::Config agree_on_config(const config::Sources& sources, comm::Communicator& everyone);

/// Returns the number of ranks of this node, including this rank, whose allowed cores are exactly
/// those of this rank. Collective.
int ranks_sharing_cores(const std::vector<int>& node_of_world_rank, const device::Cores& cores,
                        comm::Communicator& everyone);

/// A run that can begin once its result directory exists.
struct PreparedRun {
    context::RunContext context;              // complete except launch.exit_ends_others
    context::Resources resources;             // complete except `counters`
    LaunchRecord launch;                      // complete except `roofline`
    std::shared_ptr<storage::FileLock> lock;  // of the directory, if resumed; held by rank 0
    std::string device_note;  // why device.kind auto uses no GPU, if that is unexpected
};

/// Agrees on the configuration, the layout (eq. 5), the data and the devices of a run. The first
/// run of `series` reads the configuration at rank 0. The seed increases by 1 from run to run. A
/// resumed run has the configuration and the number of ranks of its directory. Writes no files
/// except the copies of data.staging. Among others it throws Error(launch), naming the right
/// command, if the ranks do not fit the run or execute different programs; Error(usage) if the
/// result directory of a new run exists and is not empty or a run to resume has a result of all
/// groups; Error(data) if its files are damaged. Collective; all ranks throw if one fails.
PreparedRun prepare_run(const context::RunRequest& request, comm::StartUp& start_up,
                        context::RepeatedRuns& series);

}  // namespace hpcai::launch
