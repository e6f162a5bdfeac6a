// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <hpcai/comm/communicator.hpp>
#include <hpcai/graph/parameter_store.hpp>
#include <hpcai/graph/stages.hpp>
#include <hpcai/plan/parallelism_controller.hpp>

namespace hpcai::training {

/// Gives the stage's store the stage's parameters and running statistics of the model's store, of
/// which a part's stage has some channels.
void copy_stage(const graph::Stage& stage, graph::ParameterStore& model, graph::ParameterStore& to);

/// Gives every rank's store of the model what the first rank of each of the layout's slices has in
/// its store `mine` of that slice of `stages` (graph::partition_stages). Collective in the group;
/// host memory for the largest slice's parameters.
void collect_stages(comm::Communicator& group, const plan::Layout& layout,
                    const std::vector<graph::Stage>& stages, graph::ParameterStore& mine,
                    graph::ParameterStore& model);

}  // namespace hpcai::training
