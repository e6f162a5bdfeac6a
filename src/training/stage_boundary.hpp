// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

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

// The tags are below those of the all-reduces of gradients.
inline constexpr int kValueTag = 8192;
inline constexpr int kGradientTag = 8193;
inline constexpr int kLabelTag = 8194;

/// A message and its memory, which stays valid as long as the transport may use it.
class MessageBuffer {
public:
    MessageBuffer(comm::Communicator& group, std::size_t bytes)
        : group_(group), bytes_(std::make_shared<std::vector<std::byte>>(bytes)) {}
    ~MessageBuffer() {
        if (request_ != nullptr) group_.keep_alive(bytes_);
    }

    std::span<std::byte> bytes() { return *bytes_; }
    void start_send(const Route& route) {
        const comm::Outgoing message{route.group_rank, *bytes_};
        request_ = group_.start_exchange(std::span(&message, 1), {}, route.tag);
    }
    void start_receive(const Route& route) {
        const comm::Incoming message{route.group_rank, *bytes_};
        request_ = group_.start_exchange({}, std::span(&message, 1), route.tag);
    }
    /// Progresses the message; returns true if nothing is being sent or received.
    bool test() {
        if (request_ != nullptr && request_->test()) request_.reset();
        return request_ == nullptr;
    }

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
    void send(const Route& route, const std::function<void(std::span<std::byte>)>& write) {
        const auto is_free = [&](const std::unique_ptr<MessageBuffer>& buffer) {
            return buffer->bytes().size() == route.bytes && buffer->test();
        };
        auto buffer = std::ranges::find_if(buffers_, is_free);
        if (buffer == buffers_.end()) {
            buffers_.push_back(std::make_unique<MessageBuffer>(group_, route.bytes));
            buffer = buffers_.end() - 1;
        }
        write((*buffer)->bytes());
        (*buffer)->start_send(route);
        bytes_sent_ += static_cast<std::int64_t>(route.bytes);
    }
    /// Progresses the messages; returns true if all are sent.
    bool test() {
        bool all_sent = true;
        for (const std::unique_ptr<MessageBuffer>& buffer : buffers_) all_sent &= buffer->test();
        return all_sent;
    }
    std::int64_t bytes_sent() const { return bytes_sent_; }

private:
    comm::Communicator& group_;
    std::vector<std::unique_ptr<MessageBuffer>> buffers_;
    std::int64_t bytes_sent_ = 0;
};

/// Receives the messages of a route in a step, one after the other in the same memory.
class Inbox {
public:
    Inbox(comm::Communicator& group, const Route& route)
        : route_(route), buffer_(group, route.bytes) {}

    /// Begins to receive the `messages` messages of a step.
    void begin(int messages) {
        ensure(pending_ == 0, "{} messages of the previous step were not read", pending_);
        if (route_.bytes == 0) return;
        pending_ = messages;
        buffer_.start_receive(route_);
    }
    /// Progresses the receive; returns false until the next expected message has arrived.
    bool test() { return buffer_.test(); }
    /// Calls `use` with the message that has arrived, then starts to receive the next message.
    void take(const std::function<void(std::span<const std::byte>)>& use) {
        ensure(pending_ > 0 && buffer_.test(), "no message has arrived");
        use(buffer_.bytes());
        if (--pending_ > 0) buffer_.start_receive(route_);
    }

private:
    Route route_;
    MessageBuffer buffer_;
    int pending_ = 0;
};

/// Returns the rank of the same replica and shard in `stage`; -1 if there is no such stage.
inline int peer_in_stage(const plan::Layout& layout, int group_rank, int stage) {
    if (stage < 0 || stage >= layout.stages) return -1;
    return layout.group_rank_of(stage, layout.replica_of(group_rank),
                                layout.model_shard_of(group_rank));
}

/// Exchanges activations and their gradients with the neighbouring stages through host memory.
class StageBoundary {
    using Network = graph::Network;

public:
    /// `network` is any network of this rank's stage.
    StageBoundary(comm::Communicator& group, const plan::Layout& layout, device::Device& device,
                  const Network& network)
        : previous_(peer_in_stage(layout, group.rank(), layout.stage_of(group.rank()) - 1)),
          next_(peer_in_stage(layout, group.rank(), layout.stage_of(group.rank()) + 1)),
          device_(device),
          received_(names_of(network.graph(), received_values(network.graph()), false)),
          gradients_of_received_(names_of(network.graph(), received_values(network.graph()), true)),
          outputs_(names_of(network.graph(), network.graph().outputs(), false)),
          gradients_of_outputs_(names_of(network.graph(), network.graph().outputs(), true)),
          outbox_(group),
          values_out_(make_route(next_, kValueTag, outputs_, network, &Network::value)),
          gradients_out_(make_route(previous_, kGradientTag, gradients_of_received_, network,
                                    &Network::received_gradient)),
          values_in_(group, make_route(previous_, kValueTag, received_, network, &Network::input)),
          gradients_in_(group, make_route(next_, kGradientTag, gradients_of_outputs_, network,
                                          &Network::output_gradient)) {}

    /// Begins to receive the messages of a step.
    void begin(int micro_batches) {
        values_in_.begin(micro_batches);
        gradients_in_.begin(micro_batches);
    }
    /// Returns whether the input of the next forward or backward pass has arrived.
    bool has_values() { return values_in_.test(); }
    bool has_gradients() { return gradients_in_.test(); }
    /// Copies to `network` the message that has arrived. Values are activations.
    void take_values(const Network& network) {
        take(values_in_, received_, network, &Network::input);
    }
    void take_gradients(const Network& network) {
        take(gradients_in_, gradients_of_outputs_, network, &Network::output_gradient);
    }
    /// Starts to send a copy of the values that `network` has computed.
    void send_values(const Network& network) {
        send(values_out_, outputs_, network, &Network::value);
    }
    void send_gradients(const Network& network) {
        send(gradients_out_, gradients_of_received_, network, &Network::received_gradient);
    }
    /// Progresses the messages; returns true if all are sent.
    bool test() {
        values_in_.test();
        gradients_in_.test();
        return outbox_.test();
    }
    std::int64_t bytes_sent() const { return outbox_.bytes_sent(); }

private:
    using Names = std::vector<std::string>;
    template <typename Byte>
    using Accessor = std::span<Byte> (Network::*)(const std::string&) const;

    /// Returns the names of values; with `gradients` only of values that have a gradient.
    static Names names_of(const graph::Graph& graph, const std::vector<graph::ValueId>& values,
                          bool gradients) {
        Names names;
        for (const graph::ValueId value : values) {
            if (gradients && !graph.needs_gradient(value)) continue;
            names.push_back(graph.value(value).name);
        }
        return names;
    }
    static std::vector<graph::ValueId> received_values(const graph::Graph& graph) {
        std::vector<graph::ValueId> values;
        for (graph::ValueId value = 0; value < std::ssize(graph.values()); ++value) {
            if (graph.value(value).is_received) values.push_back(value);
        }
        return values;
    }
    template <typename Buffer>
    static Route make_route(int group_rank, int tag, const Names& names, const Network& network,
                            Buffer buffer_of) {
        Route route{group_rank, tag, 0};
        for (const std::string& name : names) route.bytes += (network.*buffer_of)(name).size();
        return route;
    }

    void take(Inbox& inbox, const Names& names, const Network& network,
              Accessor<std::byte> buffer_of) {
        if (names.empty()) return;
        inbox.take([&](std::span<const std::byte> bytes) {
            for (const std::string& name : names) {
                const std::span<std::byte> buffer = (network.*buffer_of)(name);
                device_.enqueue_upload(buffer.data(), bytes.first(buffer.size()));
                bytes = bytes.subspan(buffer.size());
            }
        });
    }
    void send(const Route& route, const Names& names, const Network& network,
              Accessor<const std::byte> buffer_of) {
        if (names.empty()) return;
        device_.synchronize();
        outbox_.send(route, [&](std::span<std::byte> message) {
            for (const std::string& name : names) {
                const std::span<const std::byte> buffer = (network.*buffer_of)(name);
                device_.download(message.first(buffer.size()), buffer.data());
                message = message.subspan(buffer.size());
            }
        });
    }

    int previous_, next_;  // group ranks in the adjacent stages
    device::Device& device_;
    Names received_, gradients_of_received_, outputs_, gradients_of_outputs_;
    Outbox outbox_;
    Route values_out_, gradients_out_;
    Inbox values_in_, gradients_in_;
};

}  // namespace hpcai::training
