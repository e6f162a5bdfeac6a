// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <hpcai/comm/mpi_world.hpp>
#include <hpcai/config/config.hpp>
#include <hpcai/context/devices.hpp>
#include <hpcai/context/run_context.hpp>
#include <hpcai/device/cpu_device.hpp>
#include <hpcai/records/run_record.hpp>
#include <hpcai/storage/file_lock.hpp>

namespace hpcai::launch {

/// Returns data::load_config(sources) of rank 0 on all ranks. Collective; all ranks throw its
/// errors.
config::Config agree_on_config(const config::Sources& sources, comm::Communicator& everyone);

/// Returns the place of this rank on its node. Ranks share cores if they may use exactly the same
/// cores. Collective.
context::PlaceOnNode place_on_node(const std::vector<int>& node_of_world_rank,
                                   const device::Cores& cores, comm::Communicator& everyone);

/// A run that can begin once its result directory exists.
struct PreparedRun {
    context::RunContext context;              // complete except launch.exit_ends_others
    context::Resources resources;             // complete except `counters`
    LaunchRecord launch;                      // complete except `roofline`
    std::shared_ptr<storage::FileLock> lock;  // of a resumed run's directory, on rank 0
    std::string device_note;  // why `auto` uses no GPU, then a warning of few cores; may be empty
};

/// Agrees on the configuration, the layout (eq. 5), the data and the devices of a run. Rank 0 reads
/// the configuration for the first run of `series` (run.repeat); later runs each increase the seed
/// by 1. A resumed run has the number of ranks and, except for `resume --set`, the configuration of
/// its directory. Writes only the copies of data.staging, and repetitions.json if all runs to
/// resume are complete. Throws Error(launch), with a remedy, if the number of ranks does not fit
/// the run or ranks execute different programs; Error(usage) if the result directory of a new run
/// is not empty, or if the run to resume is complete; Error(data) if files of that run are damaged;
/// and the errors of configuration, data and devices. Collective; all ranks throw if one fails.
PreparedRun prepare_run(const context::RunRequest& request, comm::StartUp& start_up,
                        context::RepeatedRuns& series);

}  // namespace hpcai::launch
