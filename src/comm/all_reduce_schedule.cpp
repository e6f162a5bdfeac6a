// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>

#include <hpcai/base/error.hpp>
#include <hpcai/base/rounding.hpp>
#include <hpcai/comm/all_reduce_schedule.hpp>

namespace hpcai::comm {
namespace {

constexpr std::size_t kWireAlignment = 16;  // bytes

/// Returns part number `part` of `parts` parts of a range. Parts consist of whole blocks of
/// kWireBlock values; in fp16 and int8 the values of a block share a scale. The last block of the
/// range may be shorter, and the last parts may be empty.
Range part_of(const Range& range, int parts, int part) {
    const auto count = static_cast<std::size_t>(parts);
    const std::size_t length = align_up(ceil_div(range.count(), count), kWireBlock);
    const auto at = [&](std::size_t index) {
        return std::min(range.begin + index * length, range.end);
    };
    const auto index = static_cast<std::size_t>(part);
    return {at(index), at(index + 1)};
}

int index_in(std::span<const int> ranks, int rank) {
    return static_cast<int>(std::ranges::find(ranks, rank) - ranks.begin());
}

void add_message(std::vector<WireMessage>& messages, int rank, const WirePiece& piece) {
    if (piece.bytes > 0) messages.push_back({rank, piece.offset, piece.bytes});
}

/// Writes the steps of one rank: a reduce-scatter over the inner ranks (its set: row or node), then
/// over the outer ranks, which own the same part in other sets. The all-gathers reverse the order.
class ScheduleWriter {
public:
    ScheduleWriter(const AllReduceOptions& options, int rank, std::size_t values)
        : topology_(all_reduce_topology(options, rank)), format_(options.format), all_{0, values} {}

    AllReduceSchedule write() {
        reduce_scatter(all_, topology_.parts, topology_.inner, topology_.inner_index);
        if (owns()) {
            const Range mine = part_of(all_, topology_.parts, topology_.inner_index);
            reduce_scatter(mine, topology_.sets, topology_.outer, topology_.outer_index);
        }
        all_gather();
        return std::move(schedule_);
    }

private:
    /// Returns whether this rank owns a part. If nodes differ in size, some ranks own none.
    bool owns() const { return !topology_.outer.empty(); }
    int inner_size() const { return static_cast<int>(topology_.inner.size()); }

    /// Returns a piece of the wire buffer after the pieces that the current step uses.
    WirePiece next_piece(const Range& values) {
        const WirePiece piece{values, used_bytes_, wire_bytes(format_, values.count())};
        used_bytes_ = align_up(used_bytes_ + piece.bytes, kWireAlignment);
        schedule_.wire_bytes = std::max(schedule_.wire_bytes, used_bytes_);
        return piece;
    }

    /// Returns (index + k) modulo `size`. Each rank starts with a different peer, so that no rank
    /// receives all messages at once.
    static int rotate(int index, int k, int size) { return (index + k) % size; }

    /// Adds a reduce-scatter of `range`. The first `parts` members own one part each. Each owner
    /// adds the values of its part that the other members send. This rank is member number `index`.
    void reduce_scatter(const Range& range, int parts, const std::vector<int>& members, int index) {
        const int size = static_cast<int>(members.size());
        if (size == 1) return;
        ScheduleStep& step = schedule_.steps.emplace_back();
        used_bytes_ = 0;
        for (int k = 1; k < size; ++k) {
            const int owner = rotate(index, k, size);
            if (owner >= parts) continue;
            step.encode.push_back(next_piece(part_of(range, parts, owner)));
            add_message(step.sends, members[owner], step.encode.back());
        }
        if (index >= parts) return;
        const Range mine = part_of(range, parts, index);
        for (int other = 0; other < size; ++other) {
            if (other == index) continue;
            step.add.push_back(next_piece(mine));
            add_message(step.receives, members[other], step.add.back());
        }
    }

    /// Adds an all-gather of the sums, first between the sets, then within each set. Each sum is
    /// encoded once, by its owner, and forwarded in this form.
    void all_gather() {
        used_bytes_ = 0;
        std::vector<std::vector<WirePiece>> pieces;  // [part][share of the part, one per set]
        for (int part = 0; part < topology_.parts; ++part) {
            auto& shares = pieces.emplace_back();
            for (int share = 0; share < topology_.sets; ++share) {
                const Range range = part_of(all_, topology_.parts, part);
                shares.push_back(next_piece(part_of(range, topology_.sets, share)));
            }
        }
        if (owns()) gather_over_sets(pieces[topology_.inner_index]);
        gather_in_set(pieces);
        for (const auto& shares : pieces) {
            auto& decode = schedule_.steps.back().decode;
            decode.insert(decode.end(), shares.begin(), shares.end());
        }
    }

    void gather_over_sets(const std::vector<WirePiece>& shares) {
        ScheduleStep& step = schedule_.steps.emplace_back();
        const WirePiece& mine = shares[topology_.outer_index];
        step.encode.push_back(mine);
        for (int k = 1; k < topology_.sets; ++k) {
            const int other = rotate(topology_.outer_index, k, topology_.sets);
            add_message(step.sends, topology_.outer[other], mine);
            add_message(step.receives, topology_.outer[other], shares[other]);
        }
    }

    void gather_in_set(const std::vector<std::vector<WirePiece>>& pieces) {
        if (inner_size() == 1) return;
        ScheduleStep& step = schedule_.steps.emplace_back();
        for (int k = 1; k < inner_size(); ++k) {
            const int other = rotate(topology_.inner_index, k, inner_size());
            const int rank = topology_.inner[other];
            if (owns()) add_shares(step.sends, rank, pieces[topology_.inner_index]);
            if (other < topology_.parts) add_shares(step.receives, rank, pieces[other]);
        }
    }

    /// Adds one message with all shares of a part, which are consecutive in the wire buffer.
    static void add_shares(std::vector<WireMessage>& messages, int rank,
                           const std::vector<WirePiece>& shares) {
        const std::size_t begin = shares.front().offset;
        std::size_t end = begin;
        for (const WirePiece& share : shares) {
            if (share.bytes > 0) end = share.offset + share.bytes;
        }
        if (end > begin) messages.push_back({rank, begin, end - begin});
    }

    AllReduceTopology topology_;
    WireFormat format_;
    Range all_;
    std::size_t used_bytes_ = 0;  // of the wire buffer in the current step
    AllReduceSchedule schedule_;
};

}  // namespace

std::string_view name_of(AllReduceAlgorithm algorithm) {
    constexpr std::array kNames{"all_reduce", "torus_2d", "hierarchical", "native"};
    return kNames.at(static_cast<std::size_t>(algorithm));
}

int columns_of_torus(std::optional<int> configured, int ranks) {
    if (configured) {
        require(
            *configured >= 1 && ranks % *configured == 0, ExitCode::usage,
            "communication.torus_columns: expected auto or a divisor of parallel.data_degree {}, "
            "got {}",
            ranks, *configured);
        return *configured;
    }
    int columns = ranks;
    for (int rows = 1; rows <= ranks / rows; ++rows) {
        if (ranks % rows == 0) columns = ranks / rows;
    }
    return columns;
}

std::vector<int> sets_of_ranks(const AllReduceOptions& options) {
    std::vector<int> sets = options.node_of_rank;
    const int ranks = static_cast<int>(sets.size());
    int ranks_per_set = 1;
    if (options.algorithm == AllReduceAlgorithm::torus_2d) {
        ranks_per_set = columns_of_torus(options.torus_columns, ranks);
    } else if (options.algorithm != AllReduceAlgorithm::all_reduce) {
        if (!options.ranks_per_node) return sets;
        ranks_per_set = *options.ranks_per_node;
    }
    for (int rank = 0; rank < ranks; ++rank) sets[rank] = rank / ranks_per_set;
    return sets;
}

AllReduceTopology all_reduce_topology(const AllReduceOptions& options, int rank) {
    const std::vector<int> set_of_rank = sets_of_ranks(options);
    ensure(rank >= 0 && rank < std::ssize(set_of_rank), "rank {} does not exist", rank);
    std::map<int, std::vector<int>> sets;
    for (std::size_t member = 0; member < set_of_rank.size(); ++member) {
        sets[set_of_rank[member]].push_back(static_cast<int>(member));
    }
    AllReduceTopology topology;
    topology.inner = sets.at(set_of_rank[rank]);
    topology.inner_index = index_in(topology.inner, rank);
    topology.sets = static_cast<int>(sets.size());
    topology.parts = static_cast<int>(topology.inner.size());
    for (const auto& [set, ranks] : sets) {
        topology.parts = std::min(topology.parts, static_cast<int>(ranks.size()));
    }
    if (topology.inner_index >= topology.parts) return topology;
    for (const auto& [set, ranks] : sets) topology.outer.push_back(ranks[topology.inner_index]);
    topology.outer_index = index_in(topology.outer, rank);
    return topology;
}

AllReduceSchedule make_all_reduce_schedule(const AllReduceOptions& options, int rank,
                                           std::size_t values) {
    if (options.node_of_rank.size() == 1) return {};
    if (options.algorithm == AllReduceAlgorithm::native) {
        const std::size_t bytes = wire_bytes(WireFormat::fp32, values);
        const WirePiece mine{{0, values}, 0, bytes};
        const WirePiece sums{{0, values}, align_up(bytes, kWireAlignment), bytes};
        return {{{.is_native = true, .encode = {mine}, .decode = {sums}}}, sums.offset + bytes};
    }
    return ScheduleWriter(options, rank, values).write();
}

bool is_library_all_reduce(const AllReduceOptions& options) {
    return options.algorithm == AllReduceAlgorithm::native ||
           (options.algorithm == AllReduceAlgorithm::all_reduce &&
            options.format == WireFormat::fp32);
}

}  // namespace hpcai::comm
