// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <hpcai/comm/all_reduce_schedule.hpp>
#include <hpcai/comm/communicator.hpp>
#include <hpcai/comm/gradient_reducer.hpp>

namespace hpcai::comm {

/// Maxima of the bytes that ranks and nodes of a group send in all-reduces.
struct AllReduceTraffic {
    std::int64_t sent = 0;           // largest number of bytes that any rank sends
    std::int64_t between_nodes = 0;  // largest number that any rank sends to other nodes
    std::int64_t out_of_node = 0;    // largest sum over a node's ranks of the bytes to other nodes
};

/// A planned all-reduce over some ranks of a group.
struct PlannedAllReduce {
    AllReduceOptions options;
    std::size_t values = 0;
    std::vector<SentBytes> other_sent;  // by rank, in messages besides the all-reduce; empty: none
};

/// Estimates the traffic of all-reduces over disjoint sets of ranks. For an all-reduce of B bytes
/// on the wire over P ranks, in R sets of n inner ranks (AllReduceTopology), a rank sends
///
///   owner of a part   (parts - 1 + n - 1) * B / parts + 2 * (R - 1) / R * B / parts
///   other ranks       B
///
/// An owner sends 2 * (P - 1) / P * B if there are as many parts as inner ranks. Parts are not
/// rounded to whole kWireBlocks. Takes time O(all-reduces x ranks). Throws as all_reduce_topology.
AllReduceTraffic estimate_traffic(std::span<const PlannedAllReduce> all_reduces);

/// Returns the traffic of a group. This rank, which is on `node`, passes the bytes that it has
/// `sent`. Collective.
AllReduceTraffic gather_traffic(Communicator& group, int node, const SentBytes& sent);

}  // namespace hpcai::comm
