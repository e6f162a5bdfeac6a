// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include <hpcai/base/error.hpp>

namespace hpcai::comm {

/// Thrown by an MPI communicator that failed earlier or on which another rank announced a failure.
class AnnouncedError : public Error {
public:
    using Error::Error;
};

/// A collective or an exchange of messages in progress. The destructor waits until it is complete
/// or has failed. For requests of GPUs, see GradientReducer::start_all_reduce().
class Request {
public:
    virtual ~Request() = default;
    /// Progresses the operation; returns true once it is complete. Open MPI progresses a
    /// non-blocking collective only inside such calls.
    virtual bool test() = 0;
    /// Waits until the operation is complete. Throws as Communicator does.
    virtual void wait() = 0;
};

/// A message to (Outgoing) or from (Incoming) another rank.
struct Outgoing {
    int rank = 0;
    std::span<const std::byte> bytes;
};
struct Incoming {
    int rank = 0;
    std::span<std::byte> bytes;
};

/// A set of ranks, such as all ranks before StartUp::split, a group, or the leaders of the groups
/// that vote. All ranks must call every collective in the same order. Calls block unless they
/// return a Request; the buffers of a Request must not change until it is complete. Calls throw
/// Error(internal) if MPI rejects them and Error(watchdog) if a rank cannot be reached or does not
/// answer in time. They also throw a failure that another rank announced. After a throw the
/// communicator cannot be used any more. The caller may then free the buffers of its calls, except
/// those of calls that return a Request and of an all-reduce of more than 64 KiB: late messages may
/// arrive in these buffers until the process ends or MPI is finalized.
class Communicator {
public:
    virtual ~Communicator() = default;

    virtual int rank() const = 0;
    virtual int size() const = 0;

    virtual void all_reduce_sum(std::span<float> values) = 0;  // in place
    virtual void all_reduce_sum(std::span<double> values) = 0;
    virtual void all_reduce_sum(std::span<std::int64_t> values) = 0;
    virtual void all_reduce_max(std::span<double> values) = 0;

    /// Sums over ranks to `root`, in place there. Elsewhere `values` is only read.
    virtual void reduce_sum(std::span<float> values, int root) = 0;

    virtual void broadcast(std::span<std::byte> bytes, int root) = 0;

    /// Gathers `mine` of every rank into `all`, by rank. All ranks pass the same size.
    virtual void all_gather(std::span<const std::byte> mine, std::span<std::byte> all) = 0;

    virtual void send(std::span<const std::byte> bytes, int destination, int tag) = 0;
    virtual void receive(std::span<std::byte> bytes, int source, int tag) = 0;

    /// Starts to send and receive these messages. Messages between two ranks with the same `tag`
    /// match in the order in which each rank starts them. Not collective. The buffers are not
    /// copied: after a failure, pass their memory to keep_alive().
    virtual std::unique_ptr<Request> start_exchange(std::span<const Outgoing> sends,
                                                    std::span<const Incoming> receives,
                                                    int tag) = 0;

    /// Starts to sum `values` over the ranks into `sums`, other memory of the same size; returns
    /// null if it is already complete. After a failure, pass the memory of both to keep_alive().
    virtual std::unique_ptr<Request> start_all_reduce_sum(std::span<const float> values,
                                                          std::span<float> sums) {
        std::ranges::copy(values, sums.begin());
        all_reduce_sum(sums);
        return nullptr;
    }

    /// Waits until `is_done`, which may test requests, returns true. Not collective; throws as
    /// other calls do.
    virtual void wait_until(const std::function<bool()>& is_done) = 0;

    virtual void barrier() = 0;

    /// Makes a communicator of the ranks with the same `color`, ordered by `key`. Collective.
    virtual std::unique_ptr<Communicator> split(int color, int key) = 0;

    /// Notifies the other ranks that this rank fails: their current and later calls throw its code
    /// and message (truncated with MPI) instead of waiting. Not collective, returns at once.
    virtual void announce_failure(const Error& /*failure*/) noexcept {}

    /// Throws an earlier failure of this communicator, a failure that another rank announced, or an
    /// Error of the wait callback, if any. Not collective, returns at once.
    virtual void check_for_failure() {}

    /// Sets a function that check_for_failure() calls. Calls that wait for other ranks also call
    /// it, about every 20 ms. It must not use the communicator. If it throws an Error, the
    /// communicator has failed. Without MPI it is never called. Not collective.
    virtual void set_wait_callback(std::function<void()> /*callback*/) {}

    /// Keeps the buffer of a failed operation alive as long as messages may arrive in it.
    virtual void keep_alive(std::shared_ptr<const void> /*buffer*/) {}
};

/// Makes a communicator of one rank, without MPI. Sending to itself is an error.
std::unique_ptr<Communicator> make_self_communicator();

/// Runs `body` on `ranks` ranks that are threads of this process, without MPI. Returns when all
/// threads have ended. Sums are formed in the order of the ranks. An exception on one rank ends the
/// calls of the other ranks, as announce_failure() does. The first exception is rethrown here.
void run_as_threads(int ranks, const std::function<void(Communicator&)>& body);

}  // namespace hpcai::comm
