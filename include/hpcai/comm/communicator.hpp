// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include <hpcai/base/error.hpp>

namespace hpcai::comm {

/// A collective or message under way. Dropping an unfinished one waits for it.
class Request {
public:
    virtual ~Request() = default;
    /// Lets the transport advance; true once complete. Open MPI progresses a non-blocking
    /// collective only inside such calls.
    virtual bool test() = 0;
    /// Returns once complete. Throws Error(internal) when the transport reports a failure.
    virtual void wait() = 0;
};

/// A message to or from another rank.
struct Outgoing {
    int rank = 0;
    std::span<const std::byte> bytes;
};
struct Incoming {
    int rank = 0;
    std::span<std::byte> bytes;
};

/// Ranks that act together: a group, its leaders, or one process alone. Every collective must be
/// called by all ranks in the same order. Calls block unless they return a Request; buffers of a
/// Request stay untouched until it is complete. All throw Error(internal) when MPI reports an
/// error, Error(watchdog) when the other ranks do not answer in time, and the failure that another
/// rank announced. After a throw the communicator is of no more use. What was given to it may go,
/// except the values of sums over all ranks of more than 64 KiB: those are summed in place, and a
/// late message may still arrive in them until the process ends or MPI has been finished.
class Communicator {
public:
    virtual ~Communicator() = default;

    virtual int rank() const = 0;
    virtual int size() const = 0;

    virtual void all_reduce_sum(std::span<float> values) = 0;  // in place
    virtual void all_reduce_sum(std::span<double> values) = 0;
    virtual void all_reduce_sum(std::span<std::int64_t> values) = 0;
    virtual void all_reduce_max(std::span<double> values) = 0;

    /// Sum over ranks to `root`, in place there; elsewhere `values` is only read.
    virtual void reduce_sum(std::span<float> values, int root) = 0;

    virtual void broadcast(std::span<std::byte> bytes, int root) = 0;

    /// `mine` of every rank one after the other; all ranks give the same count.
    virtual void all_gather(std::span<const std::byte> mine, std::span<std::byte> all) = 0;

    virtual void send(std::span<const std::byte> bytes, int destination, int tag) = 0;
    virtual void receive(std::span<std::byte> bytes, int source, int tag) = 0;

    /// Sends and receives all of these messages. Those from one rank to another with one `tag`
    /// meet in the order in which both start them. Not collective. The bytes are not copied: after
    /// a failure they belong into keep().
    virtual std::unique_ptr<Request> start_exchange(std::span<const Outgoing> sends,
                                                    std::span<const Incoming> receives,
                                                    int tag) = 0;

    /// Returns once `is_done`, which may test requests. Not collective; throws as other calls do.
    virtual void wait_until(const std::function<bool()>& is_done) = 0;

    virtual void barrier() = 0;

    /// Ranks with the same `color` form a new communicator, ordered by `key`. Collective.
    virtual std::unique_ptr<Communicator> split(int color, int key) = 0;

    /// Tells the other ranks that this one gives up: their calls, those under way too, throw
    /// `failure` instead of waiting for it. Not collective, returns at once.
    virtual void announce_failure(const Error& /*failure*/) noexcept {}

    /// Throws what made this communicator useless or the failure that another rank announced, if
    /// anything has. Not collective, returns at once.
    virtual void look_for_failure() {}

    /// Sets a function that is called about every 20 ms while a call here waits for other ranks;
    /// what it throws is a failure of this communicator. It may not use the communicator. Not
    /// collective.
    virtual void while_waiting(std::function<void()> /*look*/) {}

    /// Keeps `buffer`, which a sum that failed was to be made in, as long as messages may arrive.
    virtual void keep(std::shared_ptr<const void> /*buffer*/) {}
};

/// A single process: collectives leave values as they are. Sending to itself is an error.
std::unique_ptr<Communicator> make_self_communicator();

}  // namespace hpcai::comm
