// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <hpcai/comm/communicator.hpp>
#include <hpcai/comm/tensor_parallel_exchange.hpp>
#include <hpcai/graph/network.hpp>
#include <hpcai/plan/parallelism_controller.hpp>

namespace hpcai::training {

/// The stage and shard of this rank in its group's pipeline. Everything outlives what is made from
/// it.
struct PipelineShare {
    plan::Layout layout;
    // The networks of this rank's stage (graph::partition_stages) for one micro-batch: as many as
    // are in flight in its list of tasks. The others are twins of the first.
    std::vector<graph::Network*> networks;
    comm::Communicator& group;                         // all stages and shards
    comm::Communicator& replicas;                      // the ranks that train this one's parameters
    comm::TensorParallelExchange* exchange = nullptr;  // of the networks; unused without shards
};

}  // namespace hpcai::training
