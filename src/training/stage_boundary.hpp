// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include <hpcai/device/device.hpp>
#include <hpcai/graph/network.hpp>
#include <hpcai/plan/parallelism_controller.hpp>

#include "stage_messages.hpp"

namespace hpcai::training {

/// The group ranks of the stages before and after this one, of the same replica and shard; -1 where
/// there is none.
struct Neighbours {
    int before = -1;
    int after = -1;
};

Neighbours neighbours_of(const plan::Layout& layout, int group_rank);

/// Exchanges the values at the two ends of a stage, and their gradients, with the neighbouring
/// stages: one message for each micro-batch and direction, through host memory.
class StageBoundary {
public:
    /// `network` is one of the stage's; the others have the same values.
    StageBoundary(comm::Communicator& group, device::Device& device, const graph::Network& network,
                  const Neighbours& neighbours);

    /// Begins a step with that many micro-batches.
    void begin(int micro_batches);
    /// Returns whether the input of the next forward or backward pass has arrived.
    bool has_values() { return values_in_.test(); }
    bool has_gradients() { return gradients_in_.test(); }
    /// Give the input to the network, once it has arrived.
    void take_values(const graph::Network& network) {
        take(values_in_, received_, network, &Network::input);
    }
    void take_gradients(const graph::Network& network) {
        take(gradients_in_, output_gradients_, network, &Network::output_gradient);
    }
    /// Start to send the output of the pass.
    void send_values(const graph::Network& network) {
        send(values_out_, outputs_, network, &Network::value);
    }
    void send_gradients(const graph::Network& network) {
        send(gradients_out_, received_gradients_, network, &Network::received_gradient);
    }
    /// Lets messages advance; true when all sent ones have gone.
    bool test();
    std::int64_t bytes_sent() const { return outbox_.bytes_sent(); }

private:
    using Network = graph::Network;
    /// The values of one message, by name.
    using Names = std::vector<std::string>;
    template <typename Byte>
    using PlaceOf = std::span<Byte> (Network::*)(const std::string&) const;

    void take(Inbox& inbox, const Names& names, const Network& network,
              PlaceOf<std::byte> place_of);
    void send(const Route& route, const Names& names, const Network& network,
              PlaceOf<const std::byte> place_of);

    device::Device& device_;
    Names received_, received_gradients_, outputs_, output_gradients_;
    Outbox outbox_;
    Route values_out_, gradients_out_;
    Inbox values_in_, gradients_in_;
};

}  // namespace hpcai::training
