// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <vector>

#include <hpcai/comm/communicator.hpp>
#include <hpcai/comm/sync_batch_norm_group.hpp>
#include <hpcai/comm/tensor_parallel_exchange.hpp>
#include <hpcai/context/run_context.hpp>
#include <hpcai/graph/network.hpp>

namespace hpcai::group {

class Partition;

/// Returns the graph of the configured model for the rows that one rank computes at once.
graph::Graph make_training_graph(const context::RunContext& context,
                                 const data::SampleSet& samples);

/// A model on one rank of the group that trains it. A run can build any number of them.
class Model {
public:
    /// Builds the training networks of `graph`, which is not fused, and their initial weights. The
    /// number of the group selects the random numbers. Needs no other rank. Throws Error(data) when
    /// training.initial_weights does not fit, Error(internal) when memory does not suffice.
    Model(graph::Graph graph, const context::RunContext& context,
          const context::Resources& resources);
    ~Model();

    std::uint32_t number() const { return number_; }
    /// The graph of the whole model.
    const graph::Graph& graph() const { return graph_; }
    /// The training networks until drop_networks(): one, or one for each micro-batch in flight in
    /// this rank's stage of a pipeline.
    std::vector<graph::Network*> networks() const;
    /// The messages between shards of layers, which must be connected before the networks run. Null
    /// without tensor parallelism.
    comm::TensorParallelExchange* exchange();
    /// The BatchNorm statistics over ranks, which must be connected before the networks run.
    comm::SyncBatchNormGroup& sync_batch_norm_group() { return sync_batch_norm_group_; }
    /// The parameters of the whole model; until collect() those of this rank's stage and shard.
    graph::ParameterStore& store() { return *store_; }
    /// Returns parameters and running statistics of the whole model, 8 bytes each, where a rank has
    /// a stage or shard of it; null where store() has all. Collective in the group.
    std::unique_ptr<graph::ParameterStore> collected(comm::Communicator& group);
    /// Replaces store() by collected() where that is not null. Collective in the group.
    void collect(comm::Communicator& group);
    /// Replaces networks and store() by the weights of a file. Throws as training::read_weights.
    void load(const std::filesystem::path& weights);
    /// Frees the memory of the training networks.
    void drop_networks() { networks_.clear(); }

private:
    void build_networks(const context::RunContext& context, const context::Resources& resources);

    device::Device& device_;
    std::uint32_t number_;
    graph::Graph graph_;
    std::unique_ptr<Partition> partition_;  // null where a rank trains the whole model
    std::unique_ptr<graph::ParameterStore> store_;
    comm::SyncBatchNormGroup sync_batch_norm_group_;
    std::vector<std::unique_ptr<graph::Network>> networks_;  // the others are twins of the first
};

}  // namespace hpcai::group
