// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include <hpcai/device/device.hpp>
#include <hpcai/graph/network.hpp>
#include <hpcai/plan/parallelism_controller.hpp>

#include "stage_messages.hpp"

namespace hpcai::training {

/// What the ranks before and behind this one are, of the same replica; -1 where there are none.
struct Neighbours {
    int before = -1;
    int behind = -1;
};

Neighbours neighbours_of(const plan::Layout& layout, int group_rank);

/// Exchanges the values at the two ends of a stage, and their gradients, with the stages beside it:
/// one message for each micro-batch and direction, through host memory.
class StageBoundary {
public:
    /// `network` is one of the stage's; the others have the same values.
    StageBoundary(comm::Communicator& group, device::Device& device, const graph::Network& network,
                  const Neighbours& neighbours);

    /// A step of so many micro-batches begins.
    void begin(int micro_batches);
    /// Whether what the next forward or backward pass reads has come.
    bool has_values() { return values_in_.test(); }
    bool has_gradients() { return gradients_in_.test(); }
    /// Give it to the network, once it has come.
    void take_values(graph::Network& network);
    void take_gradients(graph::Network& network);
    /// Start to send what the pass has made.
    void send_values(const graph::Network& network);
    void send_gradients(const graph::Network& network);
    /// Lets messages advance; true when all that were sent have gone.
    bool test();
    std::int64_t bytes_sent() const { return outbox_.bytes_sent(); }

private:
    using PlaceOf = std::function<std::span<const std::byte>(const std::string&)>;
    /// Values, by name, that are one message.
    using Names = std::vector<std::string>;

    void send(const Route& route, const Names& names, const PlaceOf& place_of);

    device::Device& device_;
    Names received_, received_gradients_, outputs_, output_gradients_;
    Outbox outbox_;
    Route values_out_, gradients_out_;
    Inbox values_in_, gradients_in_;
};

}  // namespace hpcai::training
