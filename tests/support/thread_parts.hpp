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
class ThreadParts {
public:
    explicit ThreadParts(int parts) : meeting_(parts), letters_(static_cast<std::size_t>(parts)) {
        for (int part = 0; part < parts; ++part) exchanges_.emplace_back(*this, part);
    }

    device::ShardExchange& exchange(int part) { return exchanges_[static_cast<std::size_t>(part)]; }
    std::int64_t bytes_sent(int part) const {
        return exchanges_[static_cast<std::size_t>(part)].sent;
    }

    /// Runs `body` for all shards at the same time and rethrows an exception of one of them.
    void run(const std::function<void(int)>& body) {
        std::vector<std::exception_ptr> failures(exchanges_.size());
        {
            std::vector<std::jthread> threads;
            for (int part = 0; part < static_cast<int>(exchanges_.size()); ++part) {
                threads.emplace_back([&, part] {
                    try {
                        body(part);
                    } catch (...) {
                        failures[static_cast<std::size_t>(part)] = std::current_exception();
                        meeting_.arrive_and_drop();
                    }
                });
            }
        }
        for (const std::exception_ptr& failure : failures) {
            if (failure) std::rethrow_exception(failure);
        }
    }

private:
    using Letter = std::vector<std::byte>;

    struct Exchange final : device::ShardExchange {
        Exchange(ThreadParts& team, int mine) : all(team), own(mine) {}
        int shards() const override { return static_cast<int>(all.exchanges_.size()); }
        int shard() const override { return own; }
        void exchange(const device::ShardMessages& messages) override { all.carry(*this, messages); }

        ThreadParts& all;
        int own;
        std::int64_t sent = 0;
    };

    void carry(Exchange& mine, const device::ShardMessages& messages) {
        std::vector<Letter>& out = letters_[static_cast<std::size_t>(mine.own)];
        out.assign(exchanges_.size(), {});
        for (int to = 0; to < mine.shards(); ++to) {
            if (to == mine.own) continue;
            Letter& letter = out[static_cast<std::size_t>(to)];
            letter.resize(messages.bytes_to(to));
            messages.write(to, letter);
            mine.sent += static_cast<std::int64_t>(letter.size());
        }
        meeting_.arrive_and_wait();
        for (int from = 0; from < mine.shards(); ++from) {
            const Letter& letter =
                letters_[static_cast<std::size_t>(from)][static_cast<std::size_t>(mine.own)];
            const std::size_t expected = from == mine.own ? 0 : messages.bytes_from(from);
            if (letter.size() != expected) throw std::logic_error("parts that do not fit");
            messages.read(from, letter);
        }
        meeting_.arrive_and_wait();
    }

    std::barrier<> meeting_;
    std::vector<Exchange> exchanges_;
    std::vector<std::vector<Letter>> letters_;  // [from][to]
};

/// Returns the channels of shard `part` of `whole`, a tensor whose channels are on axis `axis`.
template <typename Numbers>
Numbers numbers_of_part(const Numbers& whole, const tensor::Shape& shape, std::size_t axis,
                        const ops::ChannelRange& range) {
    std::int64_t inner = 1;
    for (std::size_t i = axis + 1; i < shape.rank(); ++i) inner *= shape[i];
    Numbers part;
    for (std::size_t i = 0; i < whole.size(); ++i) {
        const std::int64_t channel = static_cast<std::int64_t>(i) / inner % shape[axis];
        if (channel < range.first || channel >= range.first + range.count) continue;
        part.push_back(whole[i]);
    }
    return part;
}

}  // namespace hpcai::tests
