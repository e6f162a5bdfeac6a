// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <span>

namespace hpcai::device {

/// The messages of one exchange between this shard of a network and the others, in host memory.
/// `shard` is the number of the other shard. The sender's bytes_to() equals the receiver's
/// bytes_from(). Only read() is also called for this shard itself.
struct ShardMessages {
    std::function<std::size_t(int shard)> bytes_to, bytes_from;
    /// Writes the message to another shard into `to`, which has bytes_to() bytes.
    std::function<void(int shard, std::span<std::byte> to)> write;
    /// Called for each shard in order after all messages arrived; `from` is empty for this shard.
    std::function<void(int shard, std::span<const std::byte> from)> read;
};

/// Transfers messages between the shards of a network, which compute different channels.
class ShardExchange {
public:
    virtual ~ShardExchange() = default;
    virtual int shards() const = 0;
    virtual int shard() const = 0;  // index of this shard
    /// Collective over the shards. Returns after it has called read() for each shard. Throws Error
    /// when another shard does not respond or has failed; the object is then unusable.
    virtual void exchange(const ShardMessages& messages) = 0;
};

/// Replaces each value by its sum over all shards, added in the order of the shards, so that all
/// shards get the same bits. Collective.
void sum_over_shards(ShardExchange& exchange, std::span<double> values);

/// All-reduces the statistics of SyncBatchNorm, and sums of gradients, over the ranks that share
/// statistics (ops::BatchNorm::statistics_samples). Not thread-safe.
class SyncBatchNormReducer {
public:
    virtual ~SyncBatchNormReducer() = default;

    /// The number of ranks that share statistics, including this one.
    virtual int ranks() const = 0;

    /// Sums `values` in place, with the same bits on all ranks. Collective: all ranks must make
    /// the same calls in order. Throws Error when another rank does not respond or has failed.
    virtual void sum(std::span<double> values) = 0;
};

}  // namespace hpcai::device
