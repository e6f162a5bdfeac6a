// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <map>

#include <hpcai/base/error.hpp>
#include <hpcai/base/rounding.hpp>
#include <hpcai/comm/all_reduce_schedule.hpp>

namespace hpcai::comm {

namespace {

constexpr std::size_t kWireAlignment = 16;  // bytes

/// Part `part` of `parts` of a range: whole blocks but for the last that holds any.
Range part_of(const Range& range, int parts, int part) {
    const auto count = static_cast<std::size_t>(parts);
    const std::size_t length = align_up(ceil_div(range.count(), count), kWireBlock);
    const auto at = [&](std::size_t index) {
        return std::min(range.begin + index * length, range.end);
    };
    const auto index = static_cast<std::size_t>(part);
    return {at(index), at(index + 1)};
}

int place_in(std::span<const int> ranks, int rank) {
    return static_cast<int>(std::ranges::find(ranks, rank) - ranks.begin());
}

AllReduceTopology place_in_torus(const AllReduceOptions& options, int rank) {
    const int ranks = static_cast<int>(options.node_of_rank.size());
    const int columns = columns_of_torus(options.torus_columns, ranks);
    AllReduceTopology place;
    place.parts = columns;
    place.sets = ranks / columns;
    place.inner_index = rank % columns;
    place.outer_index = rank / columns;
    for (int column = 0; column < columns; ++column) {
        place.inner.push_back(place.outer_index * columns + column);
    }
    for (int row = 0; row < place.sets; ++row) {
        place.outer.push_back(row * columns + place.inner_index);
    }
    return place;
}

AllReduceTopology place_in_hierarchy(const AllReduceOptions& options, int rank) {
    const std::vector<int> node_of_rank = nodes_of_ranks(options);
    std::map<int, std::vector<int>> nodes;
    for (std::size_t one = 0; one < node_of_rank.size(); ++one) {
        nodes[node_of_rank[one]].push_back(static_cast<int>(one));
    }
    AllReduceTopology place;
    place.inner = nodes.at(node_of_rank[rank]);
    place.inner_index = place_in(place.inner, rank);
    place.sets = static_cast<int>(nodes.size());
    place.parts = static_cast<int>(place.inner.size());
    for (const auto& [node, ranks] : nodes) {
        place.parts = std::min(place.parts, static_cast<int>(ranks.size()));
    }
    if (place.inner_index >= place.parts) return place;
    for (const auto& [node, ranks] : nodes) {
        place.outer.push_back(ranks[place.inner_index]);
    }
    place.outer_index = place_in(place.outer, rank);
    return place;
}

/// Gives out the memory of one step after the other.
class WireMemory {
public:
    explicit WireMemory(WireFormat format) : format_(format) {}
    void begin() { next_ = 0; }
    WirePiece piece(const Range& values) {
        const WirePiece piece{values, next_, wire_bytes(format_, values.count())};
        next_ = align_up(next_ + piece.bytes, kWireAlignment);
        most_ = std::max(most_, next_);
        return piece;
    }
    std::size_t most() const { return most_; }

private:
    WireFormat format_;
    std::size_t next_ = 0;
    std::size_t most_ = 0;
};

void add_message(std::vector<WireMessage>& messages, int rank, const WirePiece& piece) {
    if (piece.bytes > 0) messages.push_back({rank, piece.offset, piece.bytes});
}

/// Writes the program of one rank.
class ScheduleWriter {
public:
    ScheduleWriter(const AllReduceOptions& options, int rank, std::size_t values)
        : place_(place_in_sum(options, rank)), memory_(options.format), all_{0, values} {
        mine_ = part_of(all_, place_.parts, std::min(place_.inner_index, place_.parts - 1));
        if (!owns()) mine_ = {values, values};
    }

    AllReduceSchedule write() {
        scatter_in_set();
        if (owns()) scatter_over_sets();
        gather();
        schedule_.wire_bytes = memory_.most();
        return std::move(schedule_);
    }

private:
    bool owns() const { return !place_.outer.empty(); }
    int inner_size() const { return static_cast<int>(place_.inner.size()); }
    /// The k-th rank after this one: all ranks begin with another, so that none gets all at once.
    static int turn(int index, int k, int size) { return (index + k) % size; }

    /// Every part goes to its owner, which adds it to its own.
    void scatter_in_set() {
        if (inner_size() == 1) return;
        SumStep& step = schedule_.steps.emplace_back();
        memory_.begin();
        for (int k = 1; k < inner_size(); ++k) {
            const int owner = turn(place_.inner_index, k, inner_size());
            if (owner >= place_.parts) continue;
            step.encode.push_back(memory_.piece(part_of(all_, place_.parts, owner)));
            add_message(step.sends, place_.inner[owner], step.encode.back());
        }
        if (!owns()) return;
        for (int other = 0; other < inner_size(); ++other) {
            if (other == place_.inner_index) continue;
            step.add.push_back(memory_.piece(mine_));
            add_message(step.receives, place_.inner[other], step.add.back());
        }
    }

    /// Every share of this rank's part goes to its owner among the other sets' ranks.
    void scatter_over_sets() {
        if (place_.sets == 1) return;
        SumStep& step = schedule_.steps.emplace_back();
        memory_.begin();
        for (int k = 1; k < place_.sets; ++k) {
            const int owner = turn(place_.outer_index, k, place_.sets);
            step.encode.push_back(memory_.piece(part_of(mine_, place_.sets, owner)));
            add_message(step.sends, place_.outer[owner], step.encode.back());
        }
        const Range share = part_of(mine_, place_.sets, place_.outer_index);
        for (int other = 0; other < place_.sets; ++other) {
            if (other == place_.outer_index) continue;
            step.add.push_back(memory_.piece(share));
            add_message(step.receives, place_.outer[other], step.add.back());
        }
    }

    /// Encoded shares of the sum go to all: first over the sets, then as they are within each.
    void gather() {
        memory_.begin();
        std::vector<std::vector<WirePiece>> pieces;  // [part][share]
        for (int part = 0; part < place_.parts; ++part) {
            auto& shares = pieces.emplace_back();
            for (int share = 0; share < place_.sets; ++share) {
                const Range range = part_of(all_, place_.parts, part);
                shares.push_back(memory_.piece(part_of(range, place_.sets, share)));
            }
        }
        if (owns()) gather_over_sets(pieces[place_.inner_index]);
        gather_in_set(pieces);
        for (const auto& shares : pieces) {
            auto& decode = schedule_.steps.back().decode;
            decode.insert(decode.end(), shares.begin(), shares.end());
        }
    }

    void gather_over_sets(const std::vector<WirePiece>& shares) {
        SumStep& step = schedule_.steps.emplace_back();
        const WirePiece& mine = shares[place_.outer_index];
        step.encode.push_back(mine);
        for (int k = 1; k < place_.sets; ++k) {
            const int other = turn(place_.outer_index, k, place_.sets);
            add_message(step.sends, place_.outer[other], mine);
            add_message(step.receives, place_.outer[other], shares[other]);
        }
    }

    void gather_in_set(const std::vector<std::vector<WirePiece>>& pieces) {
        if (inner_size() == 1) return;
        SumStep& step = schedule_.steps.emplace_back();
        for (int k = 1; k < inner_size(); ++k) {
            const int other = turn(place_.inner_index, k, inner_size());
            const int rank = place_.inner[other];
            if (owns()) add_shares(step.sends, rank, pieces[place_.inner_index]);
            if (other < place_.parts) add_shares(step.receives, rank, pieces[other]);
        }
    }

    /// One message: pieces of a part stand one after the other.
    static void add_shares(std::vector<WireMessage>& messages, int rank,
                           const std::vector<WirePiece>& shares) {
        const std::size_t begin = shares.front().offset;
        std::size_t end = begin;
        for (const WirePiece& share : shares) {
            if (share.bytes > 0) end = share.offset + share.bytes;
        }
        if (end > begin) messages.push_back({rank, begin, end - begin});
    }

    AllReduceTopology place_;
    WireMemory memory_;
    Range all_;
    Range mine_;  // the part that this rank owns
    AllReduceSchedule schedule_;
};

}  // namespace

std::string_view name_of(AllReduceAlgorithm algorithm) {
    constexpr std::array kNames{"all_reduce", "torus_2d", "hierarchical"};
    return kNames.at(static_cast<std::size_t>(algorithm));
}

int columns_of_torus(std::optional<int> wanted, int ranks) {
    if (wanted) {
        require(
            *wanted >= 1 && ranks % *wanted == 0, ExitCode::usage,
            "communication.torus_columns: expected auto or a divisor of parallel.data_degree {}, "
            "got {}",
            ranks, *wanted);
        return *wanted;
    }
    int columns = ranks;
    for (int rows = 1; rows <= ranks / rows; ++rows) {
        if (ranks % rows == 0) columns = ranks / rows;
    }
    return columns;
}

std::vector<int> nodes_of_ranks(const AllReduceOptions& options) {
    std::vector<int> nodes = options.node_of_rank;
    if (options.algorithm != AllReduceAlgorithm::hierarchical || !options.ranks_per_node)
        return nodes;
    for (std::size_t rank = 0; rank < nodes.size(); ++rank) {
        nodes[rank] = static_cast<int>(rank) / *options.ranks_per_node;
    }
    return nodes;
}

AllReduceTopology place_in_sum(const AllReduceOptions& options, int rank) {
    const int ranks = static_cast<int>(options.node_of_rank.size());
    ensure(rank >= 0 && rank < ranks, "rank {} of {}", rank, ranks);
    switch (options.algorithm) {
        case AllReduceAlgorithm::torus_2d:
            return place_in_torus(options, rank);
        case AllReduceAlgorithm::hierarchical:
            return place_in_hierarchy(options, rank);
        case AllReduceAlgorithm::all_reduce:
            break;
    }
    AllReduceTopology place;
    place.inner = {rank};
    place.outer_index = rank;
    place.sets = ranks;
    for (int one = 0; one < ranks; ++one) place.outer.push_back(one);
    return place;
}

AllReduceSchedule make_all_reduce_schedule(const AllReduceOptions& options, int rank,
                                           std::size_t values) {
    if (options.node_of_rank.size() == 1) return {};
    return ScheduleWriter(options, rank, values).write();
}

bool is_library_sum(const AllReduceOptions& options) {
    return options.algorithm == AllReduceAlgorithm::all_reduce &&
           options.format == WireFormat::fp32;
}

}  // namespace hpcai::comm
