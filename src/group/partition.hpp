// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include <hpcai/comm/communicator.hpp>
#include <hpcai/comm/tensor_parallel_exchange.hpp>
#include <hpcai/config/config.hpp>
#include <hpcai/graph/parameter_store.hpp>
#include <hpcai/graph/shard.hpp>
#include <hpcai/plan/parallelism_controller.hpp>

namespace hpcai::group {

/// The stages and shards of a model of which each rank trains one.
class Partition {
public:
    /// Divides `graph`, which the partition does not keep, for rank `group_rank` of a group.
    Partition(const graph::Graph& graph, const config::TrainingConfig& training,
              const plan::Layout& layout, int group_rank);

    /// The graph of this rank's stage and shard.
    const graph::Graph& graph() const { return mine().graph; }
    /// The messages between the shards of a stage; null where there is one shard.
    comm::TensorParallelExchange* exchange() { return exchange_.get(); }
    /// Copies this rank's parameters out of those of the whole model. `states` is the number of
    /// arrays that the optimizer keeps.
    std::unique_ptr<graph::ParameterStore> take(graph::ParameterStore& whole,
                                                device::Device& device, int states) const;
    /// Returns the parameters of `whole_graph` from those of all ranks. Collective in the group.
    std::unique_ptr<graph::ParameterStore> collect(comm::Communicator& group,
                                                   graph::ParameterStore& mine,
                                                   const graph::Graph& whole_graph,
                                                   device::Device& device) const;

private:
    const graph::Stage& mine() const { return stages_[slice_]; }

    plan::Layout layout_;
    std::size_t slice_;
    std::vector<graph::Stage> stages_;  // [slice]
    std::unique_ptr<comm::TensorParallelExchange> exchange_;
};

}  // namespace hpcai::group
