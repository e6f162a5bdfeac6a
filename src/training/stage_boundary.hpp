// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <hpcai/comm/communicator.hpp>
#include <hpcai/device/device.hpp>
#include <hpcai/graph/network.hpp>
#include <hpcai/plan/parallelism_controller.hpp>

namespace hpcai::training {

/// Destination or source of all messages with one tag.
struct Route {
    int group_rank = 0;
    int tag = 0;
    std::size_t bytes = 0;  // of each message; 0: no messages
};

/// A message and its memory, which stays valid as long as the transport may use it.
class MessageBuffer {
public:
    MessageBuffer(comm::Communicator& group, std::size_t bytes);
    ~MessageBuffer();
    MessageBuffer(const MessageBuffer&) = delete;
    MessageBuffer& operator=(const MessageBuffer&) = delete;

    std::span<std::byte> bytes() { return *bytes_; }
    void start_send(const Route& route);
    void start_receive(const Route& route);
    /// Lets the transport advance; returns true if nothing is being sent or received.
    bool test();

private:
    comm::Communicator& group_;
    std::shared_ptr<std::vector<std::byte>> bytes_;
    std::unique_ptr<comm::Request> request_;
};

/// Messages that this rank sends in a step. Each has its own memory until it is sent.
class Outbox {
public:
    explicit Outbox(comm::Communicator& group) : group_(group) {}

    /// Starts to send a message, which `write` fills.
    void send(const Route& route, const std::function<void(std::span<std::byte>)>& write);
    /// Lets messages advance; returns true if all are sent.
    bool test();
    std::int64_t bytes_sent() const { return bytes_sent_; }

private:
    comm::Communicator& group_;
    std::vector<std::unique_ptr<MessageBuffer>> buffers_;
    std::int64_t bytes_sent_ = 0;
};

/// Receives the messages of a route in a step, one after the other in the same memory.
class Inbox {
public:
    Inbox(comm::Communicator& group, const Route& route);

    /// Begins to receive the `messages` messages of a step.
    void begin(int messages);
    /// Lets the transport advance; returns true if the next message has arrived.
    bool test() { return buffer_.test(); }
    /// Calls `use` with the message that has arrived, then starts to receive the next message.
    void take(const std::function<void(std::span<const std::byte>)>& use);

private:
    Route route_;
    MessageBuffer buffer_;
    int pending_ = 0;
};

/// The group ranks with the same replica and shard in the adjacent stages; -1: no such stage.
struct Neighbours {
    int previous = -1;
    int next = -1;
};

Neighbours neighbours_of(const plan::Layout& layout, int group_rank);

/// Exchanges activations and their gradients with the neighbouring stages through host memory: one
/// message for each micro-batch and direction.
class StageBoundary {
public:
    /// `network` is any network of the stage.
    StageBoundary(comm::Communicator& group, device::Device& device, const graph::Network& network,
                  const Neighbours& neighbours);

    /// Begins to receive the messages of a step.
    void begin(int micro_batches);
    /// Returns whether the input of the next forward or backward pass has arrived.
    bool has_values() { return values_in_.test(); }
    bool has_gradients() { return gradients_in_.test(); }
    /// Copies the message that has arrived to `network`. Values are activations.
    void take_values(const graph::Network& network) {
        take(values_in_, received_, network, &Network::input);
    }
    void take_gradients(const graph::Network& network) {
        take(gradients_in_, output_gradients_, network, &Network::output_gradient);
    }
    /// Starts to send a copy of the values that `network` has computed.
    void send_values(const graph::Network& network) {
        send(values_out_, outputs_, network, &Network::value);
    }
    void send_gradients(const graph::Network& network) {
        send(gradients_out_, received_gradients_, network, &Network::received_gradient);
    }
    /// Lets messages advance; returns true if all are sent.
    bool test();
    std::int64_t bytes_sent() const { return outbox_.bytes_sent(); }

private:
    using Network = graph::Network;
    using Names = std::vector<std::string>;
    template <typename Byte>
    using Accessor = std::span<Byte> (Network::*)(const std::string&) const;

    void take(Inbox& inbox, const Names& names, const Network& network,
              Accessor<std::byte> buffer_of);
    void send(const Route& route, const Names& names, const Network& network,
              Accessor<const std::byte> buffer_of);

    device::Device& device_;
    Names received_, received_gradients_, outputs_, output_gradients_;
    Outbox outbox_;
    Route values_out_, gradients_out_;
    Inbox values_in_, gradients_in_;
};

}  // namespace hpcai::training
