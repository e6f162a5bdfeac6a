// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <span>

namespace hpcai::device {

/// The messages of one exchange between this shard of a network and the others, in host memory. The
/// argument `shard` is the index of the other shard. The sender's bytes_to() equals the receiver's
/// bytes_from().
struct ShardMessages {
    std::function<std::size_t(int shard)> bytes_to, bytes_from;
    /// Writes the message for `shard` to `buffer`, which has bytes_to(shard) bytes.
    std::function<void(int shard, std::span<std::byte> buffer)> write;
    /// Called for all shards in order once all messages arrived; this shard's `message` is empty.
    std::function<void(int shard, std::span<const std::byte> message)> read;
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

/// All-reduces the statistics and the gradient sums of a SyncBatchNorm over the ranks that share
/// statistics (ops::BatchNorm::statistics_samples). Not thread-safe.
class SyncBatchNormReducer {
public:
    virtual ~SyncBatchNormReducer() = default;

    /// The number of ranks that share statistics, including this one.
    virtual int ranks() const = 0;

    /// Sums `values` in place, with the same bits on all ranks. Collective: all ranks must make
    /// the same calls in the same order. Throws Error when a rank does not respond or failed.
    virtual void sum(std::span<double> values) = 0;
};

}  // namespace hpcai::device
