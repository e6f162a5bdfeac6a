// SPDX-License-Identifier: Apache-2.0
#include <hpcai/prediction/all_reduce_options.hpp>

namespace hpcai::prediction {

/// Indexed by config::AllReduceAlgorithm.
constexpr std::array kAlgorithms{
    comm::AllReduceAlgorithm::all_reduce, comm::AllReduceAlgorithm::torus_2d,
    comm::AllReduceAlgorithm::hierarchical, comm::AllReduceAlgorithm::native};

/// Indexed by config::CommunicationPrecision.
constexpr std::array kFormats{comm::WireFormat::fp32, comm::WireFormat::bf16,
                              comm::WireFormat::fp16, comm::WireFormat::int8};

comm::AllReduceOptions all_reduce_options(const config::CommunicationConfig& communication,
                                          const plan::ParallelismController& controller, int group,
                                          int partition) {
    comm::AllReduceOptions options{kAlgorithms[static_cast<std::size_t>(communication.algorithm)],
                                   kFormats[static_cast<std::size_t>(communication.precision)],
                                   communication.torus_columns,
                                   {},
                                   communication.ranks_per_node};
    const plan::Layout& layout = controller.layout();
    const int replicas = layout.data_degree();
    for (int replica = 0; replica < replicas; ++replica) {
        const int group_rank =
            layout.group_rank_of(partition / layout.shards, replica, partition % layout.shards);
        options.node_of_rank.push_back(
            controller.place(controller.world_rank_of(group, group_rank)).node);
    }
    comm::columns_of_torus(options.torus_columns, replicas);  // checks torus_columns
    return options;
}

}  // namespace hpcai::prediction
