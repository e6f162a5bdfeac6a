// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>

namespace hpcai::device {

/// What one part of a network tells the others at a time and hears from them, in host memory. Where
/// two parts meet, each has the bytes for the other that the other has from it.
class PartMessages {
public:
    virtual ~PartMessages() = default;
    /// Not asked of a part for itself.
    virtual std::size_t bytes_to(int part) const = 0;
    virtual std::size_t bytes_from(int part) const = 0;
    /// Writes all of the message to another part.
    virtual void write(int part, std::span<std::byte> to) = 0;
    /// Called when all messages have come, for each part in order, with nothing for this one.
    virtual void read(int part, std::span<const std::byte> from) = 0;
};

/// Carries messages between the parts of a network, each of which computes some of the channels.
class ShardExchange {
public:
    virtual ~ShardExchange() = default;
    virtual int parts() const = 0;
    virtual int part() const = 0;
    /// All parts make the same calls in the same order; returns when each message has been read.
    /// Throws Error when the others do not answer or one of them has failed; then nothing more can
    /// be exchanged.
    virtual void exchange(PartMessages& messages) = 0;
};

/// Every part's `values`, added up in the order of the parts, so that all have the same bits.
/// Collective.
void sum_over_parts(ShardExchange& exchange, std::span<double> values);

}  // namespace hpcai::device
