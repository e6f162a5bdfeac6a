// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include <hpcai/base/clock.hpp>
#include <hpcai/base/error.hpp>
#include <hpcai/comm/sync_batch_norm_group.hpp>

namespace hpcai::comm {

namespace {

constexpr int kTag = 32400;  // between those of gradients and that which announces failures

int smallest_factor(int number) {
    for (int factor = 2; factor * factor <= number; ++factor) {
        if (number % factor == 0) return factor;
    }
    return number;
}

/// Who exchanges sums with whom, `rank` among them, round after round: those of a round hold the
/// sums of ranks of which no two rounds' have one in common, so that behind the last all have all.
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

/// What late messages of a sum that failed may still read or write.
struct SyncBatchNormGroup::Messages {
    std::vector<double> mine, received;
};

SyncBatchNormGroup::SyncBatchNormGroup(int ranks) : ranks_(ranks) {
    ensure(ranks >= 1, "statistics of {} ranks", ranks);
}

void SyncBatchNormGroup::connect(Communicator& group, std::vector<int> node_of_rank) {
    ensure(group.size() % ranks_ == 0, "statistics of {} of {} ranks", ranks_, group.size());
    ensure(node_of_rank.size() == static_cast<std::size_t>(group.size()), "nodes of {} ranks of {}",
           node_of_rank.size(), group.size());
    group_ = &group;
    node_of_rank_ = std::move(node_of_rank);
    rounds_ = rounds_of(group.rank(), ranks_);
    messages_ = std::make_shared<Messages>();
}

void SyncBatchNormGroup::sum(std::span<double> values) {
    ensure(group_ != nullptr, "a sum of statistics of ranks that are not connected");
    const Stopwatch watch;
    try {
        for (const std::vector<int>& members : rounds_) exchange(members, values);
    } catch (...) {
        group_->keep(std::exchange(messages_, std::make_shared<Messages>()));
        throw;
    }
    ++accounting_.sums;
    accounting_.bytes += static_cast<std::int64_t>(values.size_bytes());
    accounting_.seconds += watch.seconds();
}

void SyncBatchNormGroup::exchange(const std::vector<int>& members, std::span<double> values) {
    std::vector<double>&mine = messages_->mine, &received = messages_->received;
    mine.assign(values.begin(), values.end());
    received.resize(values.size() * members.size());
    const auto part = [&](std::size_t member) {
        return std::span(received).subspan(member * values.size(), values.size());
    };
    std::vector<Outgoing> sends;
    std::vector<Incoming> receives;
    for (std::size_t member = 0; member < members.size(); ++member) {
        if (members[member] == group_->rank()) {
            std::ranges::copy(mine, part(member).begin());
            continue;
        }
        sends.push_back({members[member], std::as_bytes(std::span(mine))});
        receives.push_back({members[member], std::as_writable_bytes(part(member))});
    }
    const std::unique_ptr<Request> request = group_->start_exchange(sends, receives, kTag);
    group_->wait_until([&] { return request->test(); });
    accounting_.sent += sent_in_round(group_->rank(), members, node_of_rank_, values.size_bytes());
    std::ranges::fill(values, 0.0);
    for (std::size_t member = 0; member < members.size(); ++member) {
        for (std::size_t i = 0; i < values.size(); ++i) values[i] += part(member)[i];
    }
}

std::vector<SentBytes> statistics_traffic(int ranks, std::span<const int> node_of_rank,
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
