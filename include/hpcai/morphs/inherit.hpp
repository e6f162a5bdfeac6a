// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <hpcai/graph/parameter_store.hpp>
#include <hpcai/morphs/morph.hpp>

namespace hpcai::morphs {

/// Parameters and running statistics of a model in host memory, in the order and layout of its
/// graph (graph::Parameter::shape).
struct Weights {
    std::vector<std::vector<float>> parameters;         // [parameter]
    std::vector<std::vector<float>> running_means;      // [statistics] (C)
    std::vector<std::vector<float>> running_variances;  // [statistics] (C)
};

/// Copies the weights from a store. Waits for the work enqueued on its device.
Weights read_weights(const graph::Graph& graph, graph::ParameterStore& store);

/// Copies the weights of `graph` to its store. Throws Error(internal) if sizes differ.
void write_weights(const Weights& weights, const graph::Graph& graph, graph::ParameterStore& store);

/// Returns the seed of the draws of trial number `sequence` of `group`.
std::uint64_t child_seed(std::uint64_t run_seed, std::uint32_t group, std::uint32_t sequence);

/// Returns the initial weights of the graph apply_all(root, script). `parent` has the weights of
/// the graph after the first `inherited` edits. Drawn values depend only on `seed` and the
/// positions of the edits. `root` may have any batch size. Throws as apply().
Weights inherit(const graph::Graph& root, std::span<const Morph> script, std::size_t inherited,
                Weights parent, std::uint64_t seed);

}  // namespace hpcai::morphs
