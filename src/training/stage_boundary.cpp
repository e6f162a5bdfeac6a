// SPDX-License-Identifier: Apache-2.0
#include "stage_boundary.hpp"

#include <algorithm>

#include <hpcai/base/error.hpp>

namespace hpcai::training {
namespace {

// Both are below the tags of all-reduces of gradients.
constexpr int kValueTag = 8192;
constexpr int kGradientTag = 8193;

/// Returns the names of values; with `gradients` only of values that have a gradient.
std::vector<std::string> names_of(const graph::Graph& graph,
                                  const std::vector<graph::ValueId>& values, bool gradients) {
    std::vector<std::string> names;
    for (const graph::ValueId value : values) {
        if (gradients && !graph.needs_gradient(value)) continue;
        names.push_back(graph.value(value).name);
    }
    return names;
}

std::vector<graph::ValueId> received_values(const graph::Graph& graph) {
    std::vector<graph::ValueId> values;
    for (std::size_t value = 0; value < graph.values().size(); ++value) {
        if (graph.values()[value].is_received) values.push_back(static_cast<graph::ValueId>(value));
    }
    return values;
}

template <typename Accessor>
Route make_route(int group_rank, int tag, const std::vector<std::string>& names,
                 const graph::Network& network, Accessor buffer_of) {
    Route route{group_rank, tag, 0};
    for (const std::string& name : names) route.bytes += (network.*buffer_of)(name).size();
    return route;
}

}  // namespace

MessageBuffer::MessageBuffer(comm::Communicator& group, std::size_t bytes)
    : group_(group), bytes_(std::make_shared<std::vector<std::byte>>(bytes)) {}

MessageBuffer::~MessageBuffer() {
    if (request_ != nullptr) group_.keep_alive(bytes_);
}

void MessageBuffer::start_send(const Route& route) {
    const comm::Outgoing message{route.group_rank, *bytes_};
    request_ = group_.start_exchange(std::span(&message, 1), {}, route.tag);
}

void MessageBuffer::start_receive(const Route& route) {
    const comm::Incoming message{route.group_rank, *bytes_};
    request_ = group_.start_exchange({}, std::span(&message, 1), route.tag);
}

bool MessageBuffer::test() {
    if (request_ != nullptr && request_->test()) request_.reset();
    return request_ == nullptr;
}

void Outbox::send(const Route& route, const std::function<void(std::span<std::byte>)>& write) {
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

bool Outbox::test() {
    bool all_sent = true;
    for (const std::unique_ptr<MessageBuffer>& buffer : buffers_) all_sent &= buffer->test();
    return all_sent;
}

Inbox::Inbox(comm::Communicator& group, const Route& route)
    : route_(route), buffer_(group, route.bytes) {}

void Inbox::begin(int messages) {
    ensure(pending_ == 0, "{} messages of the previous step were not read", pending_);
    if (route_.bytes == 0) return;
    pending_ = messages;
    buffer_.start_receive(route_);
}

void Inbox::take(const std::function<void(std::span<const std::byte>)>& use) {
    ensure(pending_ > 0 && buffer_.test(), "no message has arrived");
    use(buffer_.bytes());
    if (--pending_ > 0) buffer_.start_receive(route_);
}

Neighbours neighbours_of(const plan::Layout& layout, int group_rank) {
    const int stage = layout.stage_of(group_rank);
    const auto rank_in = [&](int other) {
        return layout.group_rank_of(other, layout.replica_of(group_rank),
                                    layout.model_shard_of(group_rank));
    };
    Neighbours neighbours;
    if (stage > 0) neighbours.previous = rank_in(stage - 1);
    if (stage + 1 < layout.stages) neighbours.next = rank_in(stage + 1);
    return neighbours;
}

StageBoundary::StageBoundary(comm::Communicator& group, device::Device& device,
                             const graph::Network& network, const Neighbours& neighbours)
    : device_(device),
      received_(names_of(network.graph(), received_values(network.graph()), false)),
      received_gradients_(names_of(network.graph(), received_values(network.graph()), true)),
      outputs_(names_of(network.graph(), network.graph().outputs(), false)),
      output_gradients_(names_of(network.graph(), network.graph().outputs(), true)),
      outbox_(group),
      values_out_(make_route(neighbours.next, kValueTag, outputs_, network, &Network::value)),
      gradients_out_(make_route(neighbours.previous, kGradientTag, received_gradients_, network,
                                &Network::received_gradient)),
      values_in_(group,
                 make_route(neighbours.previous, kValueTag, received_, network, &Network::input)),
      gradients_in_(group, make_route(neighbours.next, kGradientTag, output_gradients_, network,
                                      &Network::output_gradient)) {}

void StageBoundary::begin(int micro_batches) {
    values_in_.begin(micro_batches);
    gradients_in_.begin(micro_batches);
}

void StageBoundary::take(Inbox& inbox, const Names& names, const Network& network,
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

void StageBoundary::send(const Route& route, const Names& names, const Network& network,
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

bool StageBoundary::test() {
    values_in_.test();
    gradients_in_.test();
    return outbox_.test();
}

}  // namespace hpcai::training
