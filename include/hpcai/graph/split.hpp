// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <hpcai/graph/graph.hpp>
#include <hpcai/graph/stages.hpp>

namespace hpcai::graph {

/// What one of several ranks computes of a model that split the channels of its layers.
struct Part {
    /// The model's nodes with channels of their own, and the exchanges with the other parts between
    /// them. Parameters and statistics are the model's in their order, each cut to its channels.
    Graph graph;
    std::vector<std::size_t> first_nodes;  // [node of the model] of those that stand for it
};

/// Part `part` of `parts` of a model that is not cut in stages (Shoeybi et al. 2019 for layers of
/// this kind). Every value between the input's normalization and the loss is split by
/// ops::channel_range. A convolution or linear layer has filters or features of its own, for which
/// it reads all channels of its image, gathered once for all that read them; where convolutions
/// make less of a value than there is of it, each reads the part's own channels instead, and the
/// sum over the parts is scattered. All else works on the part's own channels, except the loss,
/// which every part computes alike from gathered logits. Throws Error(usage), naming
/// parallel.model_degree and how many parts there can be, for more parts than a layer has
/// channels; Error(internal) for an operation that has no parts.
Part split(const Graph& graph, int parts, int part);

/// Each stage of each part, [stage * parts + part]; stages begin at the same nodes of the model in
/// all parts, where cut() would cut it. Throws as cut() and split() do.
std::vector<Stage> cut(const Graph& graph, int stages, int parts);

/// What the exchanges of a part with the others take.
struct ExchangedBytes {
    std::int64_t sent = 0;     // in a forward and a backward pass
    std::int64_t largest = 0;  // sent and received together, by the largest of them
};

/// Of a part's graph, in a network of a type of `element_bytes`.
ExchangedBytes exchanged_bytes(const Graph& graph, int element_bytes);

}  // namespace hpcai::graph
