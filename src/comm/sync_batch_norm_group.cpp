// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include <hpcai/base/clock.hpp>
#include <hpcai/comm/sync_batch_norm_group.hpp>

namespace hpcai::comm {
namespace {

constexpr int kNormTag = 32400;  // between the tags of gradients and of failures

int smallest_factor(int number) {
    for (int factor = 2; factor * factor <= number; ++factor) {
        if (number % factor == 0) return factor;
    }
    return number;
}

/// Returns, for each round, the ranks that exchange sums with `rank`, including `rank`. Each prime
/// factor p of `ranks` has a round of p ranks, whose sums so far cover disjoint sets of ranks.
std::vector<std::vector<int>> rounds_of(int rank, int ranks) {
    std::vector<std::vector<int>> rounds;
    for (int stride = 1; stride < ranks;) {
        const int count = smallest_factor(ranks / stride);
        const int first = rank - rank / stride % count * stride;
        std::vector<int>& members = rounds.emplace_back();
        for (int member = 0; member < count; ++member) members.push_back(first + member * stride);
        stride *= count;
    }
    return rounds;
}

SentBytes sent_in_round(int rank, const std::vector<int>& members,
                        std::span<const int> node_of_rank, std::size_t bytes) {
    SentBytes sent;
    for (const int member : members) {
        if (member == rank) continue;
        sent.add_message(bytes, node_of_rank[member] != node_of_rank[rank]);
    }
    return sent;
}

}  // namespace

SyncBatchNormGroup::SyncBatchNormGroup(int ranks) : ranks_(ranks) {
    ensure(ranks >= 1, "BatchNorm statistics cannot span {} ranks", ranks);
}

void SyncBatchNormGroup::connect(Communicator& group, std::vector<int> node_of_rank) {
    ensure(group.size() % ranks_ == 0,
           "BatchNorm statistics span {} ranks, which do not divide a group of {}", ranks_,
           group.size());
    ensure(node_of_rank.size() == static_cast<std::size_t>(group.size()),
           "got the nodes of {} ranks, expected {}", node_of_rank.size(), group.size());
    group_ = &group;
    node_of_rank_ = std::move(node_of_rank);
    rounds_ = rounds_of(group.rank(), ranks_);
    terms_ = std::make_shared<std::vector<double>>();
}

void SyncBatchNormGroup::sum(std::span<double> values) {
    ensure(group_ != nullptr, "BatchNorm statistics were summed before connect()");
    const Stopwatch watch;
    try {
        for (const std::vector<int>& members : rounds_) exchange(members, values);
    } catch (...) {
        // Late messages may still use the buffer.
        group_->keep_alive(std::exchange(terms_, std::make_shared<std::vector<double>>()));
        throw;
    }
    ++accounting_.sums;
    accounting_.bytes += static_cast<std::int64_t>(values.size_bytes());
    accounting_.seconds += watch.seconds();
}

void SyncBatchNormGroup::exchange(const std::vector<int>& members, std::span<double> values) {
    terms_->resize(values.size() * members.size());
    const auto terms_of = [&](std::size_t member) {
        return std::span(*terms_).subspan(member * values.size(), values.size());
    };
    const auto mine = terms_of(std::ranges::find(members, group_->rank()) - members.begin());
    std::ranges::copy(values, mine.begin());
    std::vector<Outgoing> sends;
    std::vector<Incoming> receives;
    for (std::size_t member = 0; member < members.size(); ++member) {
        if (members[member] == group_->rank()) continue;
        sends.push_back({members[member], std::as_bytes(mine)});
        receives.push_back({members[member], std::as_writable_bytes(terms_of(member))});
    }
    const std::unique_ptr<Request> request = group_->start_exchange(sends, receives, kNormTag);
    group_->wait_until([&] { return request->test(); });
    accounting_.sent += sent_in_round(group_->rank(), members, node_of_rank_, values.size_bytes());
    std::ranges::fill(values, 0.0);
    for (std::size_t member = 0; member < members.size(); ++member) {
        for (std::size_t i = 0; i < values.size(); ++i) values[i] += terms_of(member)[i];
    }
}

std::vector<SentBytes> sync_batch_norm_traffic(int ranks, std::span<const int> node_of_rank,
                                               std::int64_t bytes) {
    std::vector<SentBytes> traffic(node_of_rank.size());
    for (std::size_t rank = 0; rank < traffic.size(); ++rank) {
        const int number = static_cast<int>(rank);
        for (const std::vector<int>& members : rounds_of(number, ranks)) {
            traffic[rank] +=
                sent_in_round(number, members, node_of_rank, static_cast<std::size_t>(bytes));
        }
    }
    return traffic;
}

}  // namespace hpcai::comm
