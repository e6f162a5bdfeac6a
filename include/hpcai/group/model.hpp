// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include <hpcai/comm/communicator.hpp>
#include <hpcai/comm/gradient_reducer.hpp>
#include <hpcai/comm/sync_batch_norm_group.hpp>
#include <hpcai/comm/tensor_parallel_exchange.hpp>
#include <hpcai/context/run_context.hpp>
#include <hpcai/data/device_pictures.hpp>
#include <hpcai/graph/network.hpp>
#include <hpcai/morphs/inherit.hpp>
#include <hpcai/morphs/morph.hpp>

namespace hpcai::group {

struct Partition;

/// The edits that an architecture search has made to the configured model; empty without a search.
using Edits = std::vector<morphs::Morph>;

/// Returns the graph of the configured model with `edits` for one micro-batch of a rank.
graph::Graph make_training_graph(const context::RunContext& context, const data::SampleSet& samples,
                                 const Edits& edits = {});

/// A model on one rank of the group that trains it.
class Model {
public:
    /// Builds the training networks of the unfused `graph` and their initial weights. The
    /// random weights depend on the seed and the group number. Not collective. Throws Error(data)
    /// if training.initial_weights does not fit, Error(internal) if memory does not suffice.
    /// `edits` are those of `graph`. Without `has_networks`, the model only holds weights.
    Model(graph::Graph graph, const context::RunContext& context,
          const context::Resources& resources, Edits edits = {}, bool has_networks = true);
    ~Model();

    std::uint32_t number() const { return number_; }  // of the group and its model
    /// The graph of the whole model, not only of this rank's stage and shard.
    const graph::Graph& graph() const { return graph_; }
    const Edits& edits() const { return edits_; }
    /// The training networks until drop_networks(): one, or one for each micro-batch in flight in
    /// this rank's stage of a pipeline.
    std::vector<graph::Network*> networks() const;
    /// The exchange of this rank with the other shards of its stage. It must be connected before
    /// the networks run. Null without tensor parallelism.
    comm::TensorParallelExchange* exchange();
    /// This rank's group for BatchNorm statistics. It must be connected before the networks run.
    comm::SyncBatchNormGroup& sync_batch_norm_group() { return sync_batch_norm_group_; }
    /// The parameters of this rank's stage and shard; after collect() or load() all parameters.
    graph::ParameterStore& store() { return *store_; }
    /// Returns the parameters and running statistics of the whole model, in a new store of 8 bytes
    /// per parameter; null if each rank trains the whole model. Collective in the group.
    std::unique_ptr<graph::ParameterStore> gather_parameters(comm::Communicator& group);
    /// Replaces store() by gather_parameters() unless that is null. Collective in the group.
    void collect(comm::Communicator& group);
    /// Frees the networks and reads the whole model into store(). Throws as training::read_weights.
    void load(const std::filesystem::path& weights);
    /// Replaces the initial weights, in the precision in which training stores them. This rank
    /// must train the whole model.
    void write_initial(const morphs::Weights& weights);
    /// Frees the memory of the training networks.
    void drop_networks() { networks_.clear(); }

private:
    void build_networks(const context::RunContext& context, const context::Resources& resources);

    device::Device& device_;
    std::uint32_t number_;
    graph::Graph graph_;
    Edits edits_;
    bool is_pure_;                          // training has no fp32 master weights
    std::unique_ptr<Partition> partition_;  // null if each rank trains the whole model
    std::unique_ptr<graph::ParameterStore> store_;
    comm::SyncBatchNormGroup sync_batch_norm_group_;
    std::vector<std::unique_ptr<graph::Network>> networks_;  // one for each micro-batch in flight
};

/// The model of one rank and its buffers. It outlives MPI, because MPI may still use its memory
/// after a failure.
struct TrainingState {
    /// Builds the configured model. Throws as Model, and Error(usage) if the device has too little
    /// memory for data.resident_mib.
    TrainingState(const context::RunContext& context, const context::Resources& resources);
    /// Replaces the model, whose memory is freed first, by the configured one with `edits`. MPI
    /// must not access it any more. Throws as Model.
    void replace_model(const context::RunContext& context, const context::Resources& resources,
                       Edits edits);
    /// Like replace_model(), but without networks, and with `weights`. Also throws as load().
    void load_model(const context::RunContext& context, const context::Resources& resources,
                    Edits edits, const std::filesystem::path& weights);
    /// Frees the memory that only training needs.
    void free_training_memory();

    std::optional<Model> model;  // none only after replace_model() has thrown
    std::unique_ptr<data::DevicePictures> device_pictures;  // null: the host prepares all images
    std::unique_ptr<comm::GradientReducer> reducer;         // null until the group trains
};

}  // namespace hpcai::group
