// SPDX-License-Identifier: Apache-2.0
#include <hpcai/base/error.hpp>
#include <hpcai/prediction/all_reduce_options.hpp>

namespace hpcai::prediction {
namespace {

comm::AllReduceAlgorithm algorithm_of(config::AllReduceAlgorithm algorithm) {
    switch (algorithm) {
        case config::AllReduceAlgorithm::torus_2d:
            return comm::AllReduceAlgorithm::torus_2d;
        case config::AllReduceAlgorithm::hierarchical:
            return comm::AllReduceAlgorithm::hierarchical;
        case config::AllReduceAlgorithm::all_reduce:
            break;
    }
    return comm::AllReduceAlgorithm::all_reduce;
}

comm::WireFormat format_of(config::CommunicationPrecision precision) {
    switch (precision) {
        case config::CommunicationPrecision::bf16:
            return comm::WireFormat::bf16;
        case config::CommunicationPrecision::fp16:
            return comm::WireFormat::fp16;
        case config::CommunicationPrecision::int8:
            return comm::WireFormat::int8;
        case config::CommunicationPrecision::fp32:
            break;
    }
    return comm::WireFormat::fp32;
}

}  // namespace

comm::AllReduceOptions all_reduce_options(const config::CommunicationConfig& communication,
                                          const plan::ParallelismController& controller, int group,
                                          int slice) {
    comm::AllReduceOptions options{algorithm_of(communication.algorithm),
                                   format_of(communication.precision),
                                   communication.torus_columns,
                                   {},
                                   communication.ranks_per_node};
    const plan::Layout& layout = controller.layout();
    const int ranks = layout.data_degree();
    for (int rank = 0; rank < ranks; ++rank) {
        const int group_rank =
            layout.group_rank_of(slice / layout.parts, rank, slice % layout.parts);
        options.node_of_rank.push_back(
            controller.place(controller.world_rank_of(group, group_rank)).node);
    }
    if (options.algorithm == comm::AllReduceAlgorithm::torus_2d) {
        comm::columns_of_torus(options.torus_columns, ranks);
    }
    return options;
}

}  // namespace hpcai::prediction
