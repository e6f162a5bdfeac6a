// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>

namespace hpcai::device {

/// The messages of one exchange between this shard of a network and the others, in host memory.
/// `part` is the number of a shard. bytes_to() of the sender equals bytes_from() of the receiver.
class PartMessages {
public:
    virtual ~PartMessages() = default;
    /// The next three functions are not called for this shard itself.
    virtual std::size_t bytes_to(int part) const = 0;
    virtual std::size_t bytes_from(int part) const = 0;
    /// Writes the whole message to another shard.
    virtual void write(int part, std::span<std::byte> to) = 0;
    /// Is called after all arrivals, for each shard in order; `from` is empty for this shard.
    virtual void read(int part, std::span<const std::byte> from) = 0;
};

/// Transfers messages between the shards of a network. Each shard computes some of the channels.
class ShardExchange {
public:
    virtual ~ShardExchange() = default;
    virtual int parts() const = 0;
    virtual int part() const = 0;
    /// Collective over the shards. Returns when each message has been read. Throws Error when
    /// another shard does not respond or has failed; no exchange is possible after that.
    virtual void exchange(PartMessages& messages) = 0;
};

/// Replaces each value by its sum over all shards, added in the order of the shards, so that all
/// shards get the same bits. Collective.
void sum_over_parts(ShardExchange& exchange, std::span<double> values);

}  // namespace hpcai::device
