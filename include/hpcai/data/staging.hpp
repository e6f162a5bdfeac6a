// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include <hpcai/data/sample_index.hpp>
#include <hpcai/records/run_record.hpp>

namespace hpcai::data {

/// The files of a data set on the shared file system, for a DataDuplicator.
struct StagingRequest {
    std::filesystem::path root;
    std::uint32_t files = 0;
    /// Returns the path of a file relative to `root`. Must be valid until DataDuplicator::run()
    /// returns, as must `packed`.
    std::function<std::string(std::uint32_t)> path_of;
    const SampleIndex* packed = nullptr;  // the index whose tar files contain the files; or null
};

/// The image files of a data set, in packs that a DataDuplicator has copied. Thread-safe.
class StagedPictures {
public:
    virtual ~StagedPictures() = default;

    /// Returns the bytes of a sample's file, or nothing if the file is not staged. The first read
    /// of a sample compares the SHA-256 of the copy with that of the source. A copy that differs or
    /// cannot be read is treated as not staged and included in StagingLock::lost_copies().
    virtual std::optional<std::vector<std::uint8_t>> read(std::uint32_t sample) const = 0;
};

/// This rank's lock of the staging folder on its node.
class StagingLock {
public:
    struct State;
    explicit StagingLock(std::unique_ptr<State> state);
    /// Calls release(false).
    ~StagingLock();

    /// Returns the number of samples whose copies this rank found unreadable or damaged and read
    /// from their sources instead; 0 after release().
    std::int64_t lost_copies() const;

    /// Releases this rank's lock of the staging folder; `completed` is whether the rank completed
    /// its part of the run. The last rank of the node removes the folder if data.staging_cleanup
    /// requires this. Not collective; repeated calls do nothing.
    void release(bool completed) noexcept;

private:
    std::unique_ptr<State> state_;
};

/// The result of DataDuplicator::run().
struct StagingResult {
    StagingRecord record = {};  // the work of all nodes
    double seconds = 0;         // of the slowest rank, in run() and in the calls that added files
    std::vector<std::string> notes = {};  // for the log: files that the manifest does not list
    /// Must outlive all uses of staged images and files; null without staging.
    std::shared_ptr<StagingLock> lock = nullptr;
};

}  // namespace hpcai::data
