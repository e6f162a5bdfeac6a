// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <hpcai/comm/communicator.hpp>
#include <hpcai/config/config.hpp>
#include <hpcai/data/sample_set.hpp>
#include <hpcai/data/staging.hpp>
#include <hpcai/plan/parallelism_controller.hpp>

namespace hpcai::data {

/// The Data Duplicator of the paper: copies each sample once to the local storage of each node that
/// needs it.
///
///   shared file system      node 0: groups 0, 1                   node 1: group 2
///   train/n01/a.jpg  ...    union of bootstrap samples 0 and 1    bootstrap sample 2
///                           pack-000000, pack-000001 ...          pack-000000 ...
///
/// Files are grouped into packs. One rank of the node copies a pack and computes the SHA-256 of
/// each file. A pack is renamed to its final name when it is complete and synced. Its index file
/// has the digests and a fingerprint of the source files' root, paths, sizes and modification
/// times. A pack of an earlier run is reused if fingerprint and digests match, else removed. Source
/// files must match their listed digests, if any: those of images in tar files (`data pack`) are in
/// shards.jsonl, those of other files in a manifest.sha256 in the source's root.
///
/// The constructor, add_pictures(), add_files() and run() are collective over all ranks. An error
/// on one rank is thrown on all.
class DataDuplicator {
public:
    /// Each rank copies with `threads` threads. Nothing is written before run().
    DataDuplicator(const config::Config& config, const plan::ParallelismController& controller,
                   comm::Communicator& everyone, int threads);
    ~DataDuplicator();

    /// Adds one image per sample. Copies only readable images of at most 512 MiB that this node
    /// needs. Throws Error(data) if the manifest is malformed or cannot be read.
    void add_pictures(Split split, const StagingRequest& request);
    /// Adds files that are opened by name; copies all of them. Throws Error(data) for an unreadable
    /// file; so does run(). Also throws for a name that occurs twice, has a slash, begins with a
    /// dot or ends in ".index".
    void add_files(Split split, const StagingRequest& request);

    /// Copies the added files. Throws Error(usage) naming data.staging_directory if it is missing,
    /// is in use by another run, overlaps the samples or cannot be written. Checks disk space
    /// before the first copy and throws Error(usage) if it is too small. Throws Error(data) naming
    /// a file that changes during the copy or differs from the listed digest.
    void run();

    /// Returns the copied images, after run(); null for a split that data.staging does not copy.
    std::shared_ptr<const StagedPictures> pictures(Split split) const;
    /// Returns the folder of copied files, after run(); "" for a split that is not copied.
    std::filesystem::path folder(Split split) const;
    /// Returns the result of run().
    const StagingResult& result() const;

private:
    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace hpcai::data
