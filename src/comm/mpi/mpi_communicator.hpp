// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include <mpi.h>

#include <hpcai/comm/communicator.hpp>

#include "channel.hpp"

namespace hpcai::comm {

/// A Communicator over MPI. It uses only non-blocking MPI operations and waits with the channel's
/// deadline, because a blocking collective with a dead rank would never return.
class MpiCommunicator final : public Communicator {
public:
    /// Takes ownership of `owned`. After a failure `kept` holds the memory of pending operations.
    MpiCommunicator(MPI_Comm owned, const WorldLimits& limits, std::shared_ptr<KeptBuffers> kept);

    int rank() const override { return channel_->rank(); }
    int size() const override { return channel_->size(); }

    void all_reduce_sum(std::span<float> values) override;
    void all_reduce_sum(std::span<double> values) override;
    void all_reduce_sum(std::span<std::int64_t> values) override;
    void all_reduce_max(std::span<double> values) override;
    void reduce_sum(std::span<float> values, int root) override;
    void broadcast(std::span<std::byte> bytes, int root) override;
    void all_gather(std::span<const std::byte> mine, std::span<std::byte> all) override;
    void send(std::span<const std::byte> bytes, int destination, int tag) override;
    void receive(std::span<std::byte> bytes, int source, int tag) override;
    std::unique_ptr<Request> start_exchange(std::span<const Outgoing> sends,
                                            std::span<const Incoming> receives, int tag) override;
    std::unique_ptr<Request> start_all_reduce_sum(std::span<float> values) override;
    void wait_until(const std::function<bool()>& is_done) override {
        channel_->check_usable();
        channel_->wait_until(is_done);
    }
    void barrier() override;
    std::unique_ptr<Communicator> split(int color, int key) override;
    void announce_failure(const Error& failure) noexcept override {
        channel_->announce_failure(failure);
    }
    void check_for_failure() override { channel_->check_for_failure(); }
    void set_wait_callback(std::function<void()> callback) override {
        channel_->set_wait_callback(std::move(callback));
    }
    void keep_alive(std::shared_ptr<const void> buffer) override {
        channel_->kept()->keep_alive(std::move(buffer));
    }

private:
    std::shared_ptr<Channel> channel_;
};

}  // namespace hpcai::comm
