// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <future>

#include <hpcai/training/snapshot.hpp>

/// Checkpoints of a group. In the folder `step-<12 digits>` each rank writes its file
/// rank-<group_rank>.safetensors and then its marker rank-<group_rank>.done. A checkpoint is
/// complete if every rank's marker matches the rank's file.
namespace hpcai::training {

struct CheckpointLocation {
    std::filesystem::path folder;  // has the checkpoints of the group
    std::string config_sha256;     // of the run's configuration
    int group_rank = 0;
    int ranks = 1;  // number of ranks in the group
};

struct Checkpoint {
    std::int64_t step = 0;       // steps done
    std::int64_t launch_id = 0;  // of the launch that wrote it; `program` in the marker
    Snapshot snapshot;           // of this rank
};

std::filesystem::path checkpoint_folder(const CheckpointLocation& location, std::int64_t step);

/// Writes this rank's file durably and then its marker. Replaces existing files. Throws
/// Error(usage) with the path that cannot be written.
void write_checkpoint(const CheckpointLocation& location, const Checkpoint& checkpoint);

/// Reads this rank's file. Throws Error(data) with the path if the file or its marker is missing or
/// damaged, they do not match, or they belong to another configuration, step, rank or rank count.
Checkpoint read_checkpoint(const CheckpointLocation& location, std::int64_t step);

/// Whether this rank's marker exists. The file may have been damaged later.
bool has_marker(const CheckpointLocation& location, std::int64_t step);

/// Lists the steps of complete and incomplete checkpoints, newest first. Empty if `folder` does not
/// exist. Throws Error(data) with the path if it cannot be read.
std::vector<std::int64_t> list_checkpoints(const std::filesystem::path& folder);

/// Removes the checkpoints of all steps except `kept`, markers first. Ignores errors.
void remove_checkpoints_except(const std::filesystem::path& folder,
                               const std::vector<std::int64_t>& kept) noexcept;

/// Runs one function at a time in a thread. The destructor waits for the function.
class BackgroundWork {
public:
    /// Waits for the previous function first; its exception is lost unless wait() was called.
    void start(std::function<void()> work);
    /// Waits for the function. Returns the text of its exception; empty without one.
    std::string wait();
    /// Returns the duration of the last function; call it after wait().
    double seconds() const { return seconds_; }

private:
    std::future<std::pair<std::string, double>> result_;  // failure and seconds
    double seconds_ = 0;
};

}  // namespace hpcai::training
