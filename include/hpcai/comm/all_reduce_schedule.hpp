// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include <hpcai/comm/range.hpp>
#include <hpcai/comm/wire_format.hpp>

namespace hpcai::comm {

/// How the ranks of a group sum their gradients.
enum class AllReduceAlgorithm { all_reduce, torus_2d, hierarchical };

/// Returns the name in communication.algorithm.
std::string_view name_of(AllReduceAlgorithm algorithm);

struct AllReduceOptions {
    AllReduceAlgorithm algorithm = AllReduceAlgorithm::all_reduce;
    WireFormat format = WireFormat::fp32;
    std::optional<int> torus_columns;  // ranks in a row; absent: the grid nearest to a square
    std::vector<int> node_of_rank;     // of every rank of the group
    // Ranks, in their order, that hierarchical takes for those of a node; absent: node_of_rank.
    std::optional<int> ranks_per_node = std::nullopt;
};

/// The ranks with which a rank sums: `inner` ranks sum a part each, each part is then summed over
/// the `outer` ranks, and the inner ranks exchange what came out.
///
///   all_reduce    inner: the rank alone          outer: all ranks
///   torus_2d      inner: its row of the grid     outer: its column (Mikami et al. 2018)
///   hierarchical  inner: the ranks of its node   outer: as many of each node as the smallest has
///
/// The grid has `columns` ranks in a row, in the order of ranks: 1 x P where P is a prime. Where
/// nodes have different numbers of ranks, the first ranks of each, as many as the smallest node
/// has, own the parts; the others bring their gradients to these and get the sums back.
struct AllReduceTopology {
    std::vector<int> inner;  // this rank too
    std::vector<int> outer;  // ranks of the same part; empty: this rank owns none
    int parts = 1;           // of the values, owned by the first `parts` of `inner`
    int inner_index = 0;     // of this rank in `inner`
    int outer_index = 0;     // in `outer`
    int sets = 1;            // of inner ranks, in all
};

/// The place of `rank`. Throws Error(usage), naming communication.torus_columns, unless it divides
/// the number of ranks.
AllReduceTopology place_in_sum(const AllReduceOptions& options, int rank);

/// The node of every rank as the algorithm takes it.
std::vector<int> nodes_of_ranks(const AllReduceOptions& options);

/// The number of columns that place_in_sum takes. Throws as it does.
int columns_of_torus(std::optional<int> wanted, int ranks);

/// Values and where they stand encoded in a buffer for the wire.
struct WirePiece {
    Range values;
    std::size_t offset = 0;  // bytes, a multiple of 16
    std::size_t bytes = 0;
};

/// Consecutive bytes of that buffer, to or from another rank.
struct WireMessage {
    int rank = 0;
    std::size_t offset = 0;
    std::size_t bytes = 0;
};

/// What one rank does between two waits: encode, send and receive and, once all have arrived, add
/// and decode, each in this order.
struct SumStep {
    std::vector<WirePiece> encode;
    std::vector<WireMessage> sends;
    std::vector<WireMessage> receives;
    std::vector<WirePiece> add;     // decoded, to the values
    std::vector<WirePiece> decode;  // over the values
};

/// One rank's part in a sum of so many values over all ranks, which ends with the same bits on all
/// of them. Values are rounded when they leave the rank that brought them, when a partial sum
/// leaves its inner ranks, and when the whole sum leaves its owner, whose own terms stay fp32; sums
/// are formed in fp32 and in an order that only AllReduceOptions decides. Steps use one after the
/// other the same `wire_bytes` of memory. Each value is encoded at most once, so that one buffer as
/// long as the values holds all residuals of error feedback.
struct AllReduceSchedule {
    std::vector<SumStep> steps;
    std::size_t wire_bytes = 0;
};

/// All ranks that make it of the same options and number of values fit together.
AllReduceSchedule make_all_reduce_schedule(const AllReduceOptions& options, int rank,
                                           std::size_t values);

/// Whether it is what a library's own all-reduce may do in its place: in fp32, all with all.
bool is_library_sum(const AllReduceOptions& options);

}  // namespace hpcai::comm
