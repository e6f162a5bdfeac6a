// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include <hpcai/comm/wire_format.hpp>

namespace hpcai::comm {

/// Algorithm by which the ranks of a group all-reduce gradients.
enum class AllReduceAlgorithm { all_reduce, torus_2d, hierarchical, native };

/// Returns the value of communication.algorithm that selects it.
std::string_view name_of(AllReduceAlgorithm algorithm);

struct AllReduceOptions {
    AllReduceAlgorithm algorithm = AllReduceAlgorithm::all_reduce;
    WireFormat format = WireFormat::fp32;
    std::optional<int> torus_columns;  // of the torus_2d grid; absent: nearest to a square
    std::vector<int> node_of_rank;     // node of each rank of the group
    // Number of consecutive ranks that `hierarchical` treats as one node; absent: node_of_rank.
    std::optional<int> ranks_per_node = std::nullopt;
};

/// The ranks with which a rank exchanges values. The values are divided into parts, at most one for
/// each inner rank. A part's owner sums it, first over the inner ranks, then over its outer ranks.
/// Then the inner ranks exchange the sums.
///
///   all_reduce    inner: the rank alone          outer: all ranks
///   torus_2d      inner: its row of the grid     outer: its column (Mikami et al. 2018)
///   hierarchical  inner: the ranks of its node   outer: the ranks with the same index on each node
///   native        as hierarchical; only an estimate: the MPI library or NCCL chooses the messages
///
/// Each row of the grid has columns_of_torus() consecutive ranks. If nodes differ in size, only the
/// first ranks of each node own a part, as many as the smallest node has ranks. The other ranks of
/// a node send their gradients to the owners and receive the sums.
struct AllReduceTopology {
    std::vector<int> inner;  // includes this rank
    std::vector<int> outer;  // ranks that own the same part; empty: this rank owns no part
    int parts = 1;           // number of parts; the first `parts` ranks of `inner` own them
    int inner_index = 0;     // index of this rank in `inner`
    int outer_index = 0;     // index of this rank in `outer`
    int sets = 1;            // number of sets of inner ranks
};

/// Returns the topology of `rank`. For torus_2d throws Error(usage), naming
/// communication.torus_columns, if torus_columns is set and does not divide the number of ranks.
AllReduceTopology all_reduce_topology(const AllReduceOptions& options, int rank);

/// Returns, by rank, the number of the set to which the rank belongs. A set consists of ranks with
/// the same AllReduceTopology::inner. Throws as all_reduce_topology.
std::vector<int> sets_of_ranks(const AllReduceOptions& options);

/// Returns the number of columns of the grid. Throws as all_reduce_topology.
int columns_of_torus(std::optional<int> configured, int ranks);

/// Elements [begin, end) of a flat buffer.
struct Range {
    std::size_t begin = 0;
    std::size_t end = 0;
    std::size_t count() const { return end - begin; }
    bool operator==(const Range&) const = default;
};

/// A range of values and the location of their encoded form in the wire buffer, which holds the
/// messages of a rank.
struct WirePiece {
    Range values;
    std::size_t offset = 0;  // bytes, a multiple of 16
    std::size_t bytes = 0;
};

/// Consecutive bytes of the wire buffer that are sent to or received from another rank.
struct WireMessage {
    int rank = 0;
    std::size_t offset = 0;
    std::size_t bytes = 0;
};

/// One step of a rank: it encodes, sends and receives, waits for all messages, adds, and decodes.
/// The rank processes each list in order.
struct ScheduleStep {
    bool is_native = false;  // the MPI library sums the encoded values, in fp32
    std::vector<WirePiece> encode;
    std::vector<WireMessage> sends;
    std::vector<WireMessage> receives;
    std::vector<WirePiece> add;     // to decode and add to the values
    std::vector<WirePiece> decode;  // to decode and replace the values
};

/// The steps of one rank in an all-reduce. The sums have the same bits on all ranks. Values are
/// rounded when a rank sends them, when a partial sum over inner ranks is sent to outer ranks, and
/// when the owner sends the total. The owner's own values are added in fp32. Sums are fp32. Except
/// with native, the order of summation depends only on AllReduceOptions and the number of values.
/// All steps use the same wire buffer of `wire_bytes`. A rank encodes each value at most once, so
/// error feedback needs one residual for each value.
struct AllReduceSchedule {
    std::vector<ScheduleStep> steps;
    std::size_t wire_bytes = 0;
};

/// Returns the schedule of `rank`. All ranks must pass the same options and number of values.
AllReduceSchedule make_all_reduce_schedule(const AllReduceOptions& options, int rank,
                                           std::size_t values);

/// Returns whether a library may do the whole all-reduce: native (MPI or NCCL), or all_reduce in
/// fp32 (NCCL).
bool is_library_all_reduce(const AllReduceOptions& options);

}  // namespace hpcai::comm
