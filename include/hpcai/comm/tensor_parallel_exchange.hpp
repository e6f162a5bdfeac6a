// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include <hpcai/comm/communicator.hpp>
#include <hpcai/device/shard_exchange.hpp>

namespace hpcai::comm {

/// What the exchanges of a part have cost a rank.
struct PartAccounting {
    std::int64_t bytes_sent = 0;
    double wait_seconds = 0;  // for the messages of the other parts
};

/// Exchanges over some ranks of a group, each of which computes a part.
class TensorParallelExchange final : public device::ShardExchange {
public:
    /// The object can be given to networks before there is a group.
    TensorParallelExchange(int parts, int part) : parts_(parts), part_(part) {}

    /// Before the first exchange: `ranks` of `group`, which outlives the last one, are the parts in
    /// order.
    void connect(Communicator& group, std::vector<int> ranks);

    int parts() const override { return parts_; }
    int part() const override { return part_; }
    void exchange(device::PartMessages& messages) override;
    const PartAccounting& accounting() const { return accounting_; }

private:
    /// The messages to and from one part.
    struct Letters {
        std::span<std::byte> sent, received;
    };

    void lay_out(const device::PartMessages& messages);
    void carry();

    int parts_, part_;
    Communicator* group_ = nullptr;
    std::vector<int> ranks_;
    std::shared_ptr<std::vector<std::byte>> buffer_;
    std::vector<Letters> letters_;  // by part
    std::vector<Outgoing> sends_;
    std::vector<Incoming> receives_;
    PartAccounting accounting_;
};

}  // namespace hpcai::comm
