// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <hpcai/comm/all_reduce_schedule.hpp>
#include <hpcai/comm/communicator.hpp>
#include <hpcai/comm/gradient_reducer.hpp>

namespace hpcai::comm {

/// Bytes that ranks send for sums.
struct AllReduceTraffic {
    std::int64_t sent = 0;           // by the rank that sends most
    std::int64_t between_nodes = 0;  // to other nodes, by the rank that sends most there
    std::int64_t out_of_node = 0;    // to other nodes, by all ranks of the node that sends most
};

/// A sum that is to come, of some ranks of a group.
struct PlannedSum {
    AllReduceOptions options;
    std::size_t values = 0;
    std::vector<SentBytes> more;  // that each rank sends besides, if anything
};

/// Estimates the traffic of sums in one group, each of other ranks. A sum over P ranks, n at a time
/// inside and R sets outside, of B bytes on the wire is
///
///   owner of one of `parts`   (parts - 1 + n - 1) B / parts + 2 (R - 1) / R x B / parts
///   the others                B
///
/// which is 2 (P - 1) / P x B where there are as many parts as inner ranks. It leaves out that
/// parts are whole blocks. Takes time in proportion to sums x ranks. Throws as place_in_sum.
AllReduceTraffic estimate_traffic(std::span<const PlannedSum> sums);

/// Returns the traffic of a group from the bytes that each rank, which is on `node`, has sent.
/// Collective.
AllReduceTraffic gather_traffic(Communicator& group, int node, const SentBytes& sent);

}  // namespace hpcai::comm
