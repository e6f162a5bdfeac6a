// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include <hpcai/training/snapshot.hpp>

/// The checkpoints of a group: `<folder>/step-<12 digits>/rank-<group_rank>.safetensors`, one file
/// a rank, and rank-<group_rank>.done next to each, which is written when the file is complete. A
/// checkpoint is complete when every rank's marker fits the rank's file.
namespace hpcai::training {

struct CheckpointPlace {
    std::filesystem::path folder;  // of the group
    std::string config_sha256;     // of the run's configuration
    int group_rank = 0;
    int ranks = 1;  // of the group
};

struct Checkpoint {
    std::int64_t step = 0;     // steps done
    std::int64_t program = 0;  // that wrote it; the same on all ranks
    Snapshot snapshot;         // this rank's
};

std::filesystem::path checkpoint_folder(const CheckpointPlace& place, std::int64_t step);

/// Writes this rank's file, durably, and then its marker. A file of that name is replaced. Throws
/// Error(usage) naming what cannot be written.
void write_checkpoint(const CheckpointPlace& place, const Checkpoint& checkpoint);

/// This rank's part. Throws Error(data) naming the file where it or its marker is missing or
/// damaged, they do not fit each other, or they are of another configuration, rank or number of
/// ranks.
Checkpoint read_checkpoint(const CheckpointPlace& place, std::int64_t step);

/// Whether a rank has said that its file is whole, whatever has become of both since.
bool has_marker(const CheckpointPlace& place, std::int64_t step);

/// The steps of which there is a folder, the newest first, whole or not; none where there is no
/// such folder. Throws Error(data) naming a folder that cannot be read.
std::vector<std::int64_t> list_checkpoints(const std::filesystem::path& folder);

/// Removes the folders of the steps before `step`, markers first, as far as that is possible.
void remove_checkpoints_before(const std::filesystem::path& folder, std::int64_t step) noexcept;

/// Work in a thread of its own, one at a time.
class BackgroundWork {
public:
    BackgroundWork() = default;
    ~BackgroundWork() { wait(); }
    BackgroundWork(const BackgroundWork&) = delete;
    BackgroundWork& operator=(const BackgroundWork&) = delete;

    /// Waits for the work before.
    void start(std::function<void()> work);
    /// Returns when it is done, with what it threw as text; empty: nothing, or there was none.
    std::string wait() noexcept;
    /// The time of the last work, after wait().
    double seconds() const { return seconds_; }

private:
    std::thread thread_;
    std::string failure_;
    double seconds_ = 0;
};

}  // namespace hpcai::training
