// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <memory>

#include <hpcai/comm/communicator.hpp>
#include <hpcai/config/config.hpp>
#include <hpcai/context/run_request.hpp>
#include <hpcai/data/sample_set.hpp>
#include <hpcai/plan/parallelism_controller.hpp>
#include <hpcai/records/launch_record.hpp>
#include <hpcai/storage/file_lock.hpp>

namespace hpcai::launch {

/// A run to resume, as its directory describes it.
struct Resumption {
    LaunchRecord begun;  // complete at rank 0; elsewhere the start time and whether it had faults
    std::shared_ptr<storage::FileLock> lock;  // of rank 0

    /// Checks at rank 0 that a launch with this configuration and layout can resume the run in
    /// `folder`. Throws Error(launch) or Error(usage), naming the command that would, or
    /// Error(data) where files of finished groups are damaged.
    void check(const std::filesystem::path& folder, const config::Config& config,
               const plan::Layout& layout) const;

    /// Throws Error(data), on all ranks, unless the run began with these samples. Adds to them the
    /// objection that a run with injected faults has. Collective.
    void check_samples(const std::filesystem::path& output, data::SampleSets& samples,
                       comm::Communicator& everyone) const;
};

/// Locks and reads the directory of request.resume at rank 0. Throws Error(launch) where this
/// launch has another number of ranks, Error(usage) where another program uses the directory.
/// Collective.
Resumption agree_on_resumption(const context::RunRequest& request, comm::Communicator& everyone);

}  // namespace hpcai::launch
