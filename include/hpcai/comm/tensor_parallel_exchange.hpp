// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <hpcai/comm/communicator.hpp>
#include <hpcai/device/rank_exchange.hpp>

namespace hpcai::comm {

/// Costs of a rank's exchanges with the other shards of its model.
struct ShardAccounting {
    std::int64_t bytes_sent = 0;
    double wait_seconds = 0;  // for messages of the other shards
};

/// Exchanges activations and gradients between the shards of a model (tensor parallelism). Each
/// shard is on its own rank of a group.
class TensorParallelExchange final : public device::ShardExchange {
public:
    /// `shard` is the index of this shard. A network can be made before the group exists.
    TensorParallelExchange(int shards, int shard) : shards_(shards), shard_(shard) {}

    /// Call it before the first exchange. `ranks` are the group ranks of the shards, in order of
    /// the shards. `group` must outlive the last exchange.
    void connect(Communicator& group, std::vector<int> ranks);

    int shards() const override { return shards_; }
    int shard() const override { return shard_; }
    void exchange(const device::ShardMessages& messages) override;
    const ShardAccounting& accounting() const { return accounting_; }

private:
    int shards_, shard_;
    Communicator* group_ = nullptr;
    std::vector<int> ranks_;
    std::shared_ptr<std::vector<std::byte>> buffer_;  // of all messages of one exchange
    ShardAccounting accounting_;
};

}  // namespace hpcai::comm
