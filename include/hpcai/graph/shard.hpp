// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <hpcai/graph/graph.hpp>
#include <hpcai/graph/stages.hpp>

namespace hpcai::graph {

/// A shard of a model, which one of several ranks computes: tensor parallelism over the channels of
/// layers.
struct Part {
    /// The nodes of the model with the channels of this shard, and between them the exchanges with
    /// the other shards. Parameters and statistics are those of the model in order, restricted to
    /// these channels.
    Graph graph;
    std::vector<std::size_t> first_nodes;  // [node of the model] the first of its nodes in `graph`
};

/// Builds shard `part` of `parts` of a model that is not divided into stages (Shoeybi et al. 2019
/// for layers of this kind). Every value between the normalization of the input and the loss is
/// split by ops::channel_range. A convolution or linear layer has its own filters or features and
/// reads all channels of its image, which are gathered once for all readers. If convolutions
/// produce less data than their image has, each reads only the channels of the shard, and the sum
/// over the shards is scattered. All other operations use the channels of the shard, except the
/// loss, which every shard computes from gathered logits. Throws Error(usage), naming
/// parallel.model_degree and the largest possible number, for more shards than a layer has
/// channels; Error(internal) for an operation that cannot be divided.
Part shard(const Graph& graph, int parts, int part);

/// Builds each stage of each shard, [stage * parts + part]. Stages begin at the same nodes of the
/// model in all shards, those of partition_stages() without shards. Throws the errors of that
/// function and of shard().
std::vector<Stage> partition_stages(const Graph& graph, int stages, int parts);

/// The bytes that a shard exchanges with the others.
struct ExchangedBytes {
    std::int64_t sent = 0;     // in a forward and a backward pass
    std::int64_t largest = 0;  // sent and received in the largest exchange
};

/// For the graph of a shard, with a compute type of `element_bytes`.
ExchangedBytes exchanged_bytes(const Graph& graph, int element_bytes);

}  // namespace hpcai::graph
