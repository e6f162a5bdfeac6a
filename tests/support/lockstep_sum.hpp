// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <map>
#include <queue>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <hpcai/comm/all_reduce_schedule.hpp>
#include <hpcai/comm/all_reduce_traffic.hpp>

namespace hpcai::tests {

/// An all-reduce over ranks of one process in lockstep: the schedules of all ranks, with a queue of
/// messages in place of a network.
class LockstepSum {
public:
    LockstepSum(const comm::AllReduceOptions& options, std::size_t count)
        : options_(options), ranks_(options.node_of_rank.size()) {
        for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
            ranks_[rank].program =
                comm::make_all_reduce_schedule(options, static_cast<int>(rank), count);
            ranks_[rank].wire.resize(ranks_[rank].program.wire_bytes);
            if (options.format == comm::WireFormat::int8) ranks_[rank].residual.resize(count);
        }
    }

    /// Returns the result of each rank.
    std::vector<std::vector<float>> run(const std::vector<std::vector<float>>& mine) {
        for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
            ranks_[rank].values = mine[rank];
            ranks_[rank].step = 0;
            ranks_[rank].has_begun = false;
        }
        for (bool moves = true; moves;) {
            moves = false;
            // Begins with the last rank, because the order of ranks must not matter.
            for (std::size_t rank = ranks_.size(); rank-- > 0;) moves = advance(rank) || moves;
        }
        std::vector<std::vector<float>> results;
        for (Rank& rank : ranks_) {
            EXPECT_EQ(rank.step, rank.program.steps.size()) << "a rank does not complete";
            results.push_back(rank.values);
        }
        for (const auto& [pair, letters] : letters_) {
            EXPECT_TRUE(letters.empty()) << pair.first << " to " << pair.second;
        }
        return results;
    }

    /// Returns the traffic, counted message by message.
    comm::AllReduceTraffic traffic() const {
        comm::AllReduceTraffic most;
        std::map<int, std::int64_t> out_of_node;
        for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
            const int node = options_.node_of_rank[rank];
            std::int64_t sent = 0, between = 0;
            for (const comm::ScheduleStep& step : ranks_[rank].program.steps) {
                for (const comm::WireMessage& message : step.sends) {
                    const auto bytes = static_cast<std::int64_t>(message.bytes);
                    const auto to = static_cast<std::size_t>(message.rank);
                    sent += bytes;
                    if (options_.node_of_rank[to] != node) between += bytes;
                }
            }
            most.sent = std::max(most.sent, sent);
            most.between_nodes = std::max(most.between_nodes, between);
            out_of_node[node] += between;
        }
        for (const auto& [node, bytes] : out_of_node) {
            most.out_of_node = std::max(most.out_of_node, bytes);
        }
        return most;
    }

private:
    using Letter = std::vector<std::byte>;
    struct Rank {
        comm::AllReduceSchedule program;
        std::vector<float> values, residual;
        std::vector<std::byte> wire;
        std::size_t step = 0;
        bool has_begun = false;
    };

    std::span<std::byte> wire(Rank& rank, std::size_t offset, std::size_t bytes) {
        return std::span(rank.wire).subspan(offset, bytes);
    }

    bool advance(std::size_t number) {
        Rank& rank = ranks_[number];
        if (rank.step == rank.program.steps.size()) return false;
        const comm::ScheduleStep& step = rank.program.steps[rank.step];
        const auto me = static_cast<int>(number);
        const auto values = [&](const comm::Range& range) {
            return std::span(rank.values).subspan(range.begin, range.count());
        };
        bool moves = false;
        if (!rank.has_begun) {
            for (const comm::WirePiece& piece : step.encode) {
                std::span<float> residual(rank.residual);
                if (!residual.empty()) {
                    residual = residual.subspan(piece.values.begin, piece.values.count());
                }
                comm::encode(options_.format, values(piece.values),
                             wire(rank, piece.offset, piece.bytes), residual);
            }
            for (const comm::WireMessage& one : step.sends) {
                const auto bytes = wire(rank, one.offset, one.bytes);
                letters_[{me, one.rank}].push(Letter(bytes.begin(), bytes.end()));
            }
            rank.has_begun = moves = true;
        }
        for (const comm::WireMessage& one : step.receives) {
            if (letters_[{one.rank, me}].empty()) return moves;
        }
        for (const comm::WireMessage& one : step.receives) {
            std::queue<Letter>& letters = letters_[{one.rank, me}];
            EXPECT_EQ(letters.front().size(), one.bytes) << one.rank << " to " << me;
            std::ranges::copy(letters.front(), wire(rank, one.offset, one.bytes).begin());
            letters.pop();
        }
        for (const comm::WirePiece& piece : step.add) {
            comm::add_decoded(options_.format, wire(rank, piece.offset, piece.bytes),
                              values(piece.values));
        }
        for (const comm::WirePiece& piece : step.decode) {
            comm::decode(options_.format, wire(rank, piece.offset, piece.bytes),
                         values(piece.values));
        }
        ++rank.step;
        rank.has_begun = false;
        return true;
    }

    comm::AllReduceOptions options_;
    std::vector<Rank> ranks_;
    std::map<std::pair<int, int>, std::queue<Letter>> letters_;  // from, to
};

}  // namespace hpcai::tests
