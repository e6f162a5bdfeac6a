// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <hpcai/graph/graph.hpp>
#include <hpcai/graph/stages.hpp>

namespace hpcai::graph {

/// A shard of a model: the channels of each layer that one rank computes (tensor parallelism).
struct Shard {
    /// The nodes of the model, restricted to the channels of this shard, and the exchanges with the
    /// other shards. Parameters and statistics are in the order of the model, with this shard's
    /// channels only.
    Graph graph;
    std::vector<std::size_t> first_nodes;  // [node of the model] its first node in `graph`
};

/// Builds shard `number` (from 0) of `shards` of a model that is not divided into stages (method:
/// Shoeybi et al. 2019). Every value between the normalization of the input and the loss is split
/// by ops::channel_range. In each shard, a convolution or linear layer computes only the shard's
/// filters or features. It reads all channels of its input, which are gathered once for all
/// readers. Convolutions are an exception if their input is split, no linear layer reads it, and it
/// has more elements than the outputs of all convolutions that read it. Such a convolution reads
/// only the shard's channels and computes all filters; a reduce-scatter sums these partial results.
/// All other operations use the shard's channels. Every shard computes the loss from gathered
/// logits. Throws Error(usage), naming parallel.model_degree and its largest possible value, for
/// more shards than a layer has channels; Error(internal) for an operation that cannot be divided.
Shard shard(const Graph& graph, int shards, int number);

/// Returns each stage of each shard, [stage * shards + shard]. Every shard is cut before the nodes
/// of the model that stage_cuts(graph, stages) returns. Throws like stage_cuts() and shard().
std::vector<Stage> partition_stages(const Graph& graph, int stages, int shards);

/// The bytes that a shard exchanges with the other shards of its stage.
struct ExchangedBytes {
    std::int64_t sent = 0;     // bytes sent in a forward and a backward pass
    std::int64_t largest = 0;  // bytes sent plus received in the largest exchange
};

/// Returns the bytes that a shard exchanges if the compute type has `element_bytes`.
ExchangedBytes exchanged_bytes(const Graph& graph, int element_bytes);

}  // namespace hpcai::graph
