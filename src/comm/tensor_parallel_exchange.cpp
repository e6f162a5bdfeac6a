// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include <hpcai/base/clock.hpp>
#include <hpcai/comm/tensor_parallel_exchange.hpp>

namespace hpcai::comm {

constexpr int kShardTag = 8195;  // after the tags of messages between pipeline stages

void TensorParallelExchange::connect(Communicator& group, std::vector<int> ranks) {
    ensure(std::ssize(ranks) == shards_ && ranks[shard_] == group.rank(),
           "got {} ranks for {} shards, or another rank for this shard", ranks.size(), shards_);
    group_ = &group;
    ranks_ = std::move(ranks);
}

void TensorParallelExchange::exchange(const device::ShardMessages& messages) {
    ensure(group_ != nullptr, "shards exchanged messages before connect()");
    std::size_t bytes = 0;
    for (int shard = 0; shard < shards_; ++shard) {
        if (shard != shard_) bytes += messages.bytes_to(shard) + messages.bytes_from(shard);
    }
    if (buffer_ == nullptr || buffer_->size() < bytes) {
        buffer_ = std::make_shared<std::vector<std::byte>>(bytes);
    }
    std::span<std::byte> unused(*buffer_);
    const auto take = [&](std::size_t size) {
        const std::span<std::byte> message = unused.first(size);
        unused = unused.subspan(size);
        return message;
    };
    std::vector<Outgoing> sends;
    std::vector<Incoming> receives;
    std::vector<std::span<std::byte>> received(static_cast<std::size_t>(shards_));
    for (int shard = 0; shard < shards_; ++shard) {
        if (shard == shard_) continue;
        const std::span<std::byte> sent = take(messages.bytes_to(shard));
        received[shard] = take(messages.bytes_from(shard));
        messages.write(shard, sent);
        if (!sent.empty()) sends.push_back({ranks_[shard], sent});
        if (!received[shard].empty()) receives.push_back({ranks_[shard], received[shard]});
        accounting_.bytes_sent += static_cast<std::int64_t>(sent.size());
    }
    const Stopwatch watch;
    try {
        const auto request = group_->start_exchange(sends, receives, kShardTag);
        group_->wait_until([&] { return request->test(); });
    } catch (...) {
        group_->keep_alive(std::exchange(buffer_, nullptr));  // late messages may arrive in it
        throw;
    }
    accounting_.wait_seconds += watch.seconds();
    for (int shard = 0; shard < shards_; ++shard) messages.read(shard, received[shard]);
}

}  // namespace hpcai::comm
