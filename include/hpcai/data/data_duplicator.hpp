// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <hpcai/comm/communicator.hpp>
#include <hpcai/config/config.hpp>
#include <hpcai/data/local_stage.hpp>
#include <hpcai/data/sample_set.hpp>
#include <hpcai/data/staged_pictures.hpp>
#include <hpcai/plan/parallelism_controller.hpp>
#include <hpcai/records/run_record.hpp>

namespace hpcai::data {

/// Files of a set that lie on the shared file system.
struct StagingRequest {
    std::filesystem::path root;
    std::uint32_t files = 0;
    /// Relative to root, by file; valid until run() has returned.
    std::function<std::string(std::uint32_t)> path_of;
};

/// The Data Duplicator of the paper: copies samples to the local storage of just the nodes that
/// need them, once per node.
///
///   shared file system            node 0: groups 0, 1           node 1: group 2
///   train/n01/a.jpg  ...          bootstraps 0 and 1, united    bootstrap 2
///                                 pack-000000, pack-000001 ...  pack-000000 ...
///
/// A pack is dealt to one rank of the node, which copies it with threads of its own and takes the
/// SHA-256 of each file on the way. It gets its name when it is complete and on the disk; an index
/// beside it says what it was made of. What an earlier run left is used if it is the same by the
/// source's paths, sizes and times of modification and by its own digests, and removed otherwise.
/// Where the source's root has a manifest.sha256, files that it lists must have its digests.
///
/// Collective over all ranks of a run while it starts: constructor, adding and run(). A failure on
/// one rank is thrown on all.
class DataDuplicator {
public:
    /// `threads` copy for each rank. Nothing is written before run().
    DataDuplicator(const config::Config& config, const plan::ParallelismController& controller,
                   comm::Communicator& everyone, int threads);
    ~DataDuplicator();

    /// A picture for each sample. Those that this node does not need, and files that cannot be
    /// read now or in run(), stay where they are. Throws Error(data) for a manifest that is none or
    /// cannot be read.
    void add_pictures(Split split, const StagingRequest& request);
    /// Files that are opened by their names, all needed, none in a subfolder. Throws Error(data)
    /// for one that cannot be read, as run() does, or is there twice.
    void add_files(Split split, const StagingRequest& request);

    /// Copies what was added. Throws Error(usage) naming data.staging_directory: when it is missing
    /// or in use by another run, when samples lie in it, when its disk has less room than is needed
    /// (before anything is copied), or when it cannot be written; Error(data) naming a file that
    /// changes while it is copied or is not as its manifest says.
    void run();

    /// Returns the copies after run(); null for what data.staging leaves where it is.
    std::shared_ptr<const StagedPictures> pictures(Split split) const;
    /// Returns where the files are after run(); empty for what data.staging leaves where it is.
    std::filesystem::path folder(Split split) const;
    /// Returns what all nodes have copied, after run().
    const StagingRecord& record() const;
    /// Returns what was copied without being compared, for the log.
    std::vector<std::string> notes() const;
    /// Returns the seconds that the slowest rank spent in adding and run().
    double seconds() const;
    /// To be kept as long as pictures(), or the files in folder(), are used.
    std::shared_ptr<LocalStage> stage() const;

private:
    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace hpcai::data
