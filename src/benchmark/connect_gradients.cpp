// SPDX-License-Identifier: Apache-2.0
#include "connect_gradients.hpp"

#include <vector>

#include <hpcai/base/error.hpp>

namespace hpcai::benchmark {
namespace {

std::vector<RankFacts> ranks_of_group(const Start& start) {
    std::vector<RankFacts> ranks;
    for (std::size_t rank = 0; rank < start.ranks.size(); ++rank) {
        const plan::RankPlace place = start.controller.place(static_cast<int>(rank));
        if (place.group == start.place.group) ranks.push_back(start.ranks[rank]);
    }
    return ranks;
}

}  // namespace

std::unique_ptr<comm::GradientReducer> connect_gradients(const Start& start,
                                                         comm::Communicator& group, Logger& log) {
    const bool is_on_gpu = !start.device->uuid().empty();
    if (group.size() == 1 || !is_on_gpu) return comm::make_mpi_reducer(group);
    const std::string sharing = describe_sharing(ranks_of_group(start));
    if (!sharing.empty()) {
        log.warn("group {}: {} (counted within the group): gradients take the way through the "
                 "host, and speeds say little",
                 start.place.group, sharing);
    }
    return comm::make_staged_reducer(group, *start.device);
}

}  // namespace hpcai::benchmark
