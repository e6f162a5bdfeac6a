// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <barrier>
#include <cstdint>
#include <exception>
#include <functional>
#include <thread>
#include <vector>

#include <hpcai/device/rank_exchange.hpp>

namespace hpcai::tests {

/// Shards of a network that are threads of one process.
class ThreadShards {
public:
    explicit ThreadShards(int shards) : barrier_(shards), sent_(static_cast<std::size_t>(shards)) {
        for (int shard = 0; shard < shards; ++shard) exchanges_.emplace_back(*this, shard);
    }

    device::ShardExchange& exchange(int shard) {
        return exchanges_[static_cast<std::size_t>(shard)];
    }
    std::int64_t bytes_sent(int shard) const {
        return exchanges_[static_cast<std::size_t>(shard)].sent;
    }

    /// Runs `body` for all shards at the same time and rethrows an exception of one of them.
    void run(const std::function<void(int)>& body) {
        std::vector<std::exception_ptr> failures(exchanges_.size());
        {
            std::vector<std::jthread> threads;
            for (int shard = 0; shard < static_cast<int>(exchanges_.size()); ++shard) {
                threads.emplace_back([&, shard] {
                    try {
                        body(shard);
                    } catch (...) {
                        failures[static_cast<std::size_t>(shard)] = std::current_exception();
                        barrier_.arrive_and_drop();
                    }
                });
            }
        }
        for (const std::exception_ptr& failure : failures) {
            if (failure) std::rethrow_exception(failure);
        }
    }

private:
    using Message = std::vector<std::byte>;

    struct Exchange final : device::ShardExchange {
        Exchange(ThreadShards& team, int mine) : all(team), own(mine) {}
        int shards() const override { return static_cast<int>(all.exchanges_.size()); }
        int shard() const override { return own; }
        void exchange(const device::ShardMessages& messages) override {
            all.carry(*this, messages);
        }

        ThreadShards& all;
        int own;
        std::int64_t sent = 0;
    };

    void carry(Exchange& mine, const device::ShardMessages& messages) {
        std::vector<Message>& out = sent_[static_cast<std::size_t>(mine.own)];
        out.assign(exchanges_.size(), {});
        for (int to = 0; to < mine.shards(); ++to) {
            if (to == mine.own) continue;
            Message& message = out[static_cast<std::size_t>(to)];
            message.resize(messages.bytes_to(to));
            messages.write(to, message);
            mine.sent += static_cast<std::int64_t>(message.size());
        }
        barrier_.arrive_and_wait();
        for (int from = 0; from < mine.shards(); ++from) {
            const Message& message =
                sent_[static_cast<std::size_t>(from)][static_cast<std::size_t>(mine.own)];
            const std::size_t expected = from == mine.own ? 0 : messages.bytes_from(from);
            if (message.size() != expected)
                throw std::logic_error("a message has an unexpected size");
            messages.read(from, message);
        }
        barrier_.arrive_and_wait();
    }

    std::barrier<> barrier_;
    std::vector<Exchange> exchanges_;
    std::vector<std::vector<Message>> sent_;  // [from][to]
};

/// Returns the channels `range` of `whole`, a tensor whose channels are on axis `axis`.
template <typename Numbers>
Numbers channels_of_shard(const Numbers& whole, const tensor::Shape& shape, std::size_t axis,
                          const ops::ChannelRange& range) {
    std::int64_t inner = 1;
    for (std::size_t i = axis + 1; i < shape.rank(); ++i) inner *= shape[i];
    Numbers shard;
    for (std::size_t i = 0; i < whole.size(); ++i) {
        const std::int64_t channel = static_cast<std::int64_t>(i) / inner % shape[axis];
        if (channel < range.first || channel >= range.first + range.count) continue;
        shard.push_back(whole[i]);
    }
    return shard;
}

}  // namespace hpcai::tests
