// SPDX-License-Identifier: Apache-2.0
#include "partition.hpp"

#include <hpcai/graph/fuse_for_device.hpp>
#include <hpcai/training/stage_parameters.hpp>

namespace hpcai::group {

Partition::Partition(const graph::Graph& graph, const config::TrainingConfig& training,
                     const plan::Layout& layout, int group_rank)
    : layout_(layout),
      slice_(static_cast<std::size_t>(layout.slice_of(group_rank))),
      stages_(graph::partition_stages(training.fusion ? graph::fuse(graph) : graph, layout.stages,
                                      layout.parts)) {
    if (layout.parts == 1) return;
    exchange_ =
        std::make_unique<comm::TensorParallelExchange>(layout.parts, layout.part_of(group_rank));
}

std::unique_ptr<graph::ParameterStore> Partition::take(graph::ParameterStore& whole,
                                                       device::Device& device, int states) const {
    auto store = std::make_unique<graph::ParameterStore>(graph(), device, states);
    training::copy_stage(mine(), whole, *store);
    return store;
}

std::unique_ptr<graph::ParameterStore> Partition::collect(comm::Communicator& group,
                                                          graph::ParameterStore& mine,
                                                          const graph::Graph& whole_graph,
                                                          device::Device& device) const {
    auto whole = std::make_unique<graph::ParameterStore>(whole_graph, device, 0);
    training::collect_stages(group, layout_, stages_, mine, *whole);
    return whole;
}

}  // namespace hpcai::group
