// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>

namespace hpcai::device {

/// The messages of one exchange between this shard of a network and the others, in host memory.
/// `shard` is the index of a shard. bytes_to() of the sender equals bytes_from() of the receiver.
class ShardMessages {
public:
    virtual ~ShardMessages() = default;
    /// The next three functions are not called for this shard itself.
    virtual std::size_t bytes_to(int shard) const = 0;
    virtual std::size_t bytes_from(int shard) const = 0;
    /// Writes the whole message to another shard.
    virtual void write(int shard, std::span<std::byte> to) = 0;
    /// Called after all arrivals, for each shard in order; `from` is empty for this shard.
    virtual void read(int shard, std::span<const std::byte> from) = 0;
};

/// Transfers messages between the shards of a network. Each shard computes some of the channels.
class ShardExchange {
public:
    virtual ~ShardExchange() = default;
    virtual int shards() const = 0;  // their number
    virtual int shard() const = 0;   // the index of this one
    /// Collective over the shards. Returns when each message has been read. Throws Error when
    /// another shard does not respond or has failed; no exchange is possible after that.
    virtual void exchange(ShardMessages& messages) = 0;
};

/// Replaces each value by its sum over all shards, added in the order of the shards, so that all
/// shards get the same bits. Collective.
void sum_over_shards(ShardExchange& exchange, std::span<double> values);

}  // namespace hpcai::device
