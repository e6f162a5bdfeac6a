// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <hpcai/comm/communicator.hpp>
#include <hpcai/graph/parameter_store.hpp>
#include <hpcai/graph/stages.hpp>
#include <hpcai/plan/parallelism_controller.hpp>

namespace hpcai::training {

/// Copies the parameters and running statistics of a stage, or of a tensor-parallel shard of it,
/// from the store `model` to the stage's store `to`.
void copy_stage(const graph::Stage& stage, graph::ParameterStore& model, graph::ParameterStore& to);

/// Gathers parameters and running statistics of all shards in the store `model` of every rank. The
/// first rank with a shard broadcasts it from its store `mine`. `stages` has the stages of all
/// shards, in the order of graph::partition_stages() in shard.hpp: by stage, then by shard.
/// Collective in the group. Needs host memory for all values of the largest shard.
void all_gather_stages(comm::Communicator& group, const plan::Layout& layout,
                       const std::vector<graph::Stage>& stages, graph::ParameterStore& mine,
                       graph::ParameterStore& model);

}  // namespace hpcai::training
