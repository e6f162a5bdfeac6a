// SPDX-License-Identifier: Apache-2.0
#include "stage_boundary.hpp"

namespace hpcai::training {
namespace {

// Below those of sums between the ranks.
constexpr int kValueTag = 8192;
constexpr int kGradientTag = 8193;

/// Of the received values of a graph or of its outputs, or of those of them that have gradients.
std::vector<std::string> names_of(const graph::Graph& graph, bool are_outputs, bool gradients) {
    std::vector<graph::ValueId> values = graph.outputs();
    if (!are_outputs) {
        values.clear();
        for (std::size_t value = 0; value < graph.values().size(); ++value) {
            if (!graph.values()[value].is_received) continue;
            values.push_back(static_cast<graph::ValueId>(value));
        }
    }
    std::vector<std::string> names;
    for (const graph::ValueId value : values) {
        if (gradients && !graph.needs_gradient(value)) continue;
        names.push_back(graph.value(value).name);
    }
    return names;
}

template <typename PlaceOf>
Route make_route(int group_rank, int tag, const std::vector<std::string>& names, PlaceOf place_of) {
    Route route{group_rank, tag, 0};
    for (const std::string& name : names) route.bytes += place_of(name).size();
    return route;
}

}  // namespace

Neighbours neighbours_of(const plan::Layout& layout, int group_rank) {
    const int stage = layout.stage_of(group_rank);
    const auto of_stage = [&](int other) {
        return layout.group_rank_of(other, layout.replica_of(group_rank),
                                    layout.part_of(group_rank));
    };
    Neighbours neighbours;
    if (stage > 0) neighbours.before = of_stage(stage - 1);
    if (stage + 1 < layout.stages) neighbours.behind = of_stage(stage + 1);
    return neighbours;
}

StageBoundary::StageBoundary(comm::Communicator& group, device::Device& device,
                             const graph::Network& network, const Neighbours& neighbours)
    : device_(device),
      received_(names_of(network.graph(), false, false)),
      received_gradients_(names_of(network.graph(), false, true)),
      outputs_(names_of(network.graph(), true, false)),
      output_gradients_(names_of(network.graph(), true, true)),
      outbox_(group),
      values_out_(make_route(neighbours.behind, kValueTag, outputs_,
                             [&](const auto& name) { return network.value(name); })),
      gradients_out_(make_route(neighbours.before, kGradientTag, received_gradients_,
                                [&](const auto& name) { return network.received_gradient(name); })),
      values_in_(group, make_route(neighbours.before, kValueTag, received_,
                                   [&](const auto& name) { return network.input(name); })),
      gradients_in_(group,
                    make_route(neighbours.behind, kGradientTag, output_gradients_,
                               [&](const auto& name) { return network.output_gradient(name); })) {}

void StageBoundary::begin(int micro_batches) {
    values_in_.begin(micro_batches);
    gradients_in_.begin(micro_batches);
}

void StageBoundary::take_values(graph::Network& network) {
    if (received_.empty()) return;
    values_in_.take([&](std::span<const std::byte> bytes) {
        for (const std::string& name : received_) {
            const std::span<std::byte> place = network.input(name);
            device_.enqueue_upload(place.data(), bytes.first(place.size()));
            bytes = bytes.subspan(place.size());
        }
    });
}

void StageBoundary::take_gradients(graph::Network& network) {
    if (output_gradients_.empty()) return;
    gradients_in_.take([&](std::span<const std::byte> bytes) {
        for (const std::string& name : output_gradients_) {
            const std::span<std::byte> place = network.output_gradient(name);
            device_.enqueue_upload(place.data(), bytes.first(place.size()));
            bytes = bytes.subspan(place.size());
        }
    });
}

void StageBoundary::send_values(const graph::Network& network) {
    send(values_out_, outputs_, [&](const std::string& name) { return network.value(name); });
}

void StageBoundary::send_gradients(const graph::Network& network) {
    send(gradients_out_, received_gradients_,
         [&](const std::string& name) { return network.received_gradient(name); });
}

void StageBoundary::send(const Route& route, const Names& names, const PlaceOf& place_of) {
    if (names.empty()) return;
    device_.synchronize();
    outbox_.send(route, [&](std::span<std::byte> message) {
        for (const std::string& name : names) {
            const std::span<const std::byte> place = place_of(name);
            device_.download(message.first(place.size()), place.data());
            message = message.subspan(place.size());
        }
    });
}

bool StageBoundary::test() {
    values_in_.test();
    gradients_in_.test();
    return outbox_.test();
}

}  // namespace hpcai::training
