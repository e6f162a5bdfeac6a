// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mpi.h>

#include <hpcai/comm/communicator.hpp>
#include <hpcai/comm/mpi_world.hpp>

namespace hpcai::comm {

/// Throws Error(internal) with MPI's error text unless `code` is MPI_SUCCESS.
void check_mpi(int code, std::string_view call);

/// Memory that MPI may still use after a communicator has failed. It lives as long as MpiWorld,
/// because MPI does not report when the last late message has arrived.
using KeptBuffers = std::vector<std::shared_ptr<const void>>;

/// Owns an MPI communicator. A Communicator and its Requests share the Channel. Waits with a
/// deadline and checks for failures that other ranks announce.
class Channel {
public:
    /// Takes ownership of `owned` and sets its error handler to return errors.
    Channel(MPI_Comm owned, const WorldLimits& limits, std::shared_ptr<KeptBuffers> kept);
    ~Channel();
    Channel(const Channel&) = delete;
    Channel& operator=(const Channel&) = delete;

    MPI_Comm handle() const { return handle_; }
    int rank() const { return rank_; }
    int size() const { return size_; }
    const WorldLimits& limits() const { return limits_; }
    const std::shared_ptr<KeptBuffers>& kept() const { return kept_; }

    /// Throws the earlier failure of this channel, if there is one.
    void check_usable() const;

    /// Returns true once all `requests` are complete. Throws as Communicator does.
    bool test(std::span<MPI_Request> requests);
    void wait(std::span<MPI_Request> requests) {
        wait_until([&] { return test(requests); });
    }
    /// Waits until `is_done` returns true, at most WorldLimits::wait_seconds.
    void wait_until(const std::function<bool()>& is_done);

    /// These functions are as in Communicator.
    void announce_failure(const Error& failure) noexcept;
    void check_for_failure();
    void set_wait_callback(std::function<void()> callback) { wait_callback_ = std::move(callback); }

private:
    struct FailureMessage {
        ExitCode code = ExitCode::internal;
        std::array<char, 252> text{};  // truncated to fit; zero-terminated
    };

    [[noreturn]] void fail(const Error& failure);

    MPI_Comm handle_;
    WorldLimits limits_;
    int rank_ = 0;
    int size_ = 1;
    std::optional<Error> failure_;
    bool is_announced_ = false;  // failure_ was sent to all other ranks
    std::function<void()> wait_callback_;
    std::shared_ptr<KeptBuffers> kept_;
};

/// Makes a Communicator over MPI that owns `owned`. After a failure `kept` holds the memory of
/// pending operations.
std::unique_ptr<Communicator> make_mpi_communicator(MPI_Comm owned, const WorldLimits& limits,
                                                    std::shared_ptr<KeptBuffers> kept);

}  // namespace hpcai::comm
