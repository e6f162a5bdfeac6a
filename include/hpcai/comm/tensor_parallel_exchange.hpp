// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include <hpcai/comm/communicator.hpp>
#include <hpcai/device/shard_exchange.hpp>

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
    /// Shard `part` of `parts`. Networks can be planned with this object before the group exists.
    TensorParallelExchange(int parts, int part) : parts_(parts), part_(part) {}

    /// Call it before the first exchange. `ranks` are the group ranks of the shards, in order of
    /// the shards. `group` must outlive the last exchange.
    void connect(Communicator& group, std::vector<int> ranks);

    int parts() const override { return parts_; }
    int part() const override { return part_; }
    void exchange(device::PartMessages& messages) override;
    const ShardAccounting& accounting() const { return accounting_; }

private:
    int parts_, part_;
    Communicator* group_ = nullptr;
    std::vector<int> ranks_;
    std::shared_ptr<std::vector<std::byte>> buffer_;  // of all messages of one exchange
    ShardAccounting accounting_;
};

}  // namespace hpcai::comm
