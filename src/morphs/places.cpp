// SPDX-License-Identifier: Apache-2.0
#include "places.hpp"

#include <algorithm>

#include <hpcai/base/rounding.hpp>

namespace hpcai::morphs {
namespace {

/// How an edit changes the graph at a place.
struct Growth {
    std::int64_t amount = 0;      // Morph::amount
    std::int64_t parameters = 0;  // additional elements
};

using MaybeGrowth = std::optional<Growth>;

/// Returns the convolution of a node if no other node uses its filters, else null.
const ops::Convolution* own_convolution(const Readers& readers, NodeId id) {
    const auto* convolution = readers.as<ops::Convolution>(id);
    return convolution != nullptr && readers.owns_parameters(id) ? convolution : nullptr;
}

bool is_plain(const ops::BatchNorm* norm) {
    return norm != nullptr && !norm->frozen && !norm->add && !norm->relu;
}

bool is_plain_norm(const Readers& readers, NodeId id) {
    return is_plain(readers.as<ops::BatchNorm>(id));
}

/// Allows a convolution if a BatchNorm and a ReLU follow, whose output only convolutions read.
MaybeGrowth wider_growth(const Readers& readers, Place place) {
    const auto* convolution = own_convolution(readers, place.node);
    if (convolution == nullptr) return std::nullopt;
    const NodeId norm = readers.only_reader(place.node);
    if (!is_plain_norm(readers, norm) || !readers.owns_parameters(norm)) return std::nullopt;
    const NodeId relu = readers.only_reader(norm);
    if (readers.as<ops::Relu>(relu) == nullptr || readers.is_output(relu)) return std::nullopt;
    const std::int64_t window = convolution->kernel * convolution->kernel;
    std::int64_t per_filter = window * convolution->input[3] + 2;
    for (const NodeId reader : readers.of(readers.node(relu).output)) {
        const auto* next = own_convolution(readers, reader);
        if (next == nullptr) return std::nullopt;
        per_filter += next->filters * next->kernel * next->kernel;
    }
    return Growth{2 * convolution->filters, convolution->filters * per_filter};
}

/// Returns whether each weight of the kernel is multiplied by a pixel at some position of it.
bool fits(std::int64_t kernel, const tensor::Shape& image) {
    return kernel <= 2 * std::min(image[1], image[2]) - 1;
}

MaybeGrowth kernel_growth(const Readers& readers, Place place) {
    constexpr std::int64_t kLargest = 7;
    const auto* convolution = own_convolution(readers, place.node);
    if (convolution == nullptr || convolution->kernel % 2 == 0) return std::nullopt;
    const std::int64_t size = convolution->kernel + 2;
    if (size > kLargest || !fits(size, convolution->input)) return std::nullopt;
    const std::int64_t added = size * size - convolution->kernel * convolution->kernel;
    return Growth{size, convolution->filters * convolution->input[3] * added};
}

/// Whether norm(convolution(output of place.node)) is already added to the output of place.end.
bool has_skip(const Readers& readers, Place place) {
    NodeId sum = readers.only_reader(place.end);
    for (ValueId value = readers.node(place.end).output; readers.as<ops::Add>(sum) != nullptr;
         sum = readers.only_reader(sum)) {
        const std::vector<ValueId>& inputs = readers.node(sum).inputs;
        const ValueId other = inputs[0] == value ? inputs[1] : inputs[0];
        value = readers.node(sum).output;
        const NodeId norm = readers.graph().value(other).producer;
        if (readers.as<ops::BatchNorm>(norm) == nullptr) continue;
        const NodeId from = readers.graph().value(readers.node(norm).inputs[0]).producer;
        if (readers.as<ops::Convolution>(from) != nullptr &&
            readers.node(from).inputs[0] == readers.node(place.node).output) {
            return true;
        }
    }
    return false;
}

/// Returns the power of two that is the stride of a 1 x 1 convolution from an image of the size
/// `from` to one of the size `to`; nothing if there is none.
std::optional<std::int64_t> stride_between(const tensor::Shape& from, const tensor::Shape& to) {
    for (std::int64_t stride = 1; stride <= std::max(from[1], from[2]); stride *= 2) {
        if (ceil_div(from[1], stride) == to[1] && ceil_div(from[2], stride) == to[2]) return stride;
    }
    return std::nullopt;
}

MaybeGrowth skip_growth(const Readers& readers, Place place) {
    if (place.end <= place.node || readers.as<ops::Relu>(place.node) == nullptr) {
        return std::nullopt;
    }
    if (!is_plain_norm(readers, place.end) || readers.is_output(place.end) ||
        has_skip(readers, place)) {
        return std::nullopt;
    }
    const tensor::Shape& from = readers.as<ops::Relu>(place.node)->input;
    const tensor::Shape& to = readers.as<ops::BatchNorm>(place.end)->input;
    const std::optional<std::int64_t> stride = stride_between(from, to);
    if (!stride) return std::nullopt;
    return Growth{*stride, (from[3] + 2) * to[3]};
}

/// The first of the new convolutions has as many filters as the ReLU has channels, or a quarter as
/// many if the ReLU follows an addition, as in a bottleneck block.
MaybeGrowth deeper_growth(const Readers& readers, Place place) {
    const auto* relu = readers.as<ops::Relu>(place.node);
    if (relu == nullptr || readers.is_output(place.node) || !fits(3, relu->input)) {
        return std::nullopt;
    }
    if (plain_norm(readers.graph()) == nullptr) return std::nullopt;
    const NodeId before = readers.graph().value(readers.node(place.node).inputs[0]).producer;
    const std::int64_t channels = relu->input[3];
    const bool is_sum = readers.as<ops::Add>(before) != nullptr;
    const std::int64_t filters = is_sum ? ceil_div(channels, 4) : channels;
    const std::int64_t per_filter = 9 * channels + 2 + channels;  // of conv1, bn1 and conv2
    return Growth{filters, per_filter * filters + 2 * channels};
}

MaybeGrowth deeper_plain_growth(const Readers& readers, Place place) {
    if (!deeper_growth(readers, place)) return std::nullopt;
    const std::int64_t channels = readers.as<ops::Relu>(place.node)->input[3];
    return Growth{channels, (9 * channels + 2) * channels};
}

constexpr std::array kRules{wider_growth, kernel_growth, skip_growth, deeper_growth,
                            deeper_plain_growth};  // [MorphKind]

static_assert(kRules.size() == kMorphNames.size());

}  // namespace

Readers::Readers(const graph::Graph& graph)
    : graph_(graph), readers_(graph.values().size()), uses_(graph.parameters().size()) {
    for (std::size_t id = 0; id < graph.nodes().size(); ++id) {
        const graph::Node& node = graph.nodes()[id];
        for (const ValueId input : node.inputs) readers_[input].push_back(static_cast<NodeId>(id));
        for (const graph::ParameterId parameter : node.parameters) ++uses_[parameter];
    }
}

NodeId Readers::find(const std::string& name) const {
    const auto& nodes = graph_.nodes();
    const auto found = std::ranges::find(nodes, name, &graph::Node::name);
    return found == nodes.end() ? graph::kNoNode : static_cast<NodeId>(found - nodes.begin());
}

NodeId Readers::only_reader(NodeId id) const {
    const std::vector<NodeId>& all = of(node(id).output);
    return all.size() == 1 && !is_output(id) ? all.front() : graph::kNoNode;
}

bool Readers::is_output(NodeId id) const {
    return std::ranges::count(graph_.outputs(), node(id).output) > 0;
}

bool Readers::owns_parameters(NodeId id) const {
    return std::ranges::all_of(node(id).parameters,
                               [&](graph::ParameterId parameter) { return uses_[parameter] == 1; });
}

const ops::BatchNorm* plain_norm(const graph::Graph& graph) {
    for (const graph::Node& node : graph.nodes()) {
        const auto* norm = std::get_if<ops::BatchNorm>(&node.operation);
        if (is_plain(norm)) return norm;
    }
    return nullptr;
}

std::optional<std::int64_t> legal_amount(const Readers& readers, MorphKind kind, Place place) {
    const MaybeGrowth growth = kRules[static_cast<std::size_t>(kind)](readers, place);
    if (!growth) return std::nullopt;
    const std::int64_t total = readers.graph().parameter_count() + growth->parameters;
    return total <= kMaxParameters ? std::optional(growth->amount) : std::nullopt;
}

}  // namespace hpcai::morphs
