// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include <mpi.h>

#include <hpcai/base/error.hpp>
#include <hpcai/comm/mpi_world.hpp>

namespace hpcai::comm {

/// Throws Error(internal) with MPI's own text unless `code` is MPI_SUCCESS.
void check_mpi(int code, std::string_view call);

/// What MPI may still write to or read from after a communicator has failed. It lives as long as
/// the world, for no call says when the last late message has come.
class KeptBuffers {
public:
    void keep(std::shared_ptr<const void> buffer) { buffers_.push_back(std::move(buffer)); }
    std::size_t count() const { return buffers_.size(); }

private:
    std::vector<std::shared_ptr<const void>> buffers_;
};

/// Owns one MPI communicator, shared by a Communicator and its Requests: waits with a deadline and
/// notices the failure that another rank announces.
class Channel {
public:
    /// Takes `owned` over; errors on it are returned from now on.
    Channel(MPI_Comm owned, const WorldLimits& limits, std::shared_ptr<KeptBuffers> kept);
    ~Channel();
    Channel(const Channel&) = delete;
    Channel& operator=(const Channel&) = delete;

    MPI_Comm handle() const { return handle_; }
    int rank() const { return rank_; }
    int size() const { return size_; }
    const WorldLimits& limits() const { return limits_; }
    const std::shared_ptr<KeptBuffers>& kept() const { return kept_; }

    /// Throws what made this channel useless, if anything has.
    void check_usable() const;

    /// True once all `requests` are complete. Throws as Communicator does.
    bool test(std::span<MPI_Request> requests);
    void wait(std::span<MPI_Request> requests);
    /// Waits until `is_done`, as wait() does.
    void wait_until(const std::function<bool()>& is_done);

    void announce_failure(const Error& failure) noexcept;
    /// Throws the failure that another rank announced, if one has, or that `look` finds.
    void look_for_failure();
    void while_waiting(std::function<void()> look) { look_ = std::move(look); }

private:
    struct FailureMessage {
        ExitCode code = ExitCode::internal;
        std::array<char, 252> text{};
    };

    void look_myself();
    [[noreturn]] void fail(const Error& failure);
    void log_wait(double seconds) const;

    MPI_Comm handle_;
    WorldLimits limits_;
    int rank_ = 0;
    int size_ = 1;
    std::optional<Error> failure_;
    bool is_announced_ = false;  // failure_, to all other ranks
    std::function<void()> look_;
    std::shared_ptr<KeptBuffers> kept_;
};

}  // namespace hpcai::comm
