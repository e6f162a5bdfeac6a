// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <utility>

#include <hpcai/comm/communicator.hpp>
#include <hpcai/device/device.hpp>
#include <hpcai/graph/parameter_store.hpp>

namespace hpcai::training {

/// Hashes (Device::hash) of the part of a model that a rank trains. All zero: it is not compared.
struct ReplicaHashes {
    std::uint64_t parameters = 0;
    std::uint64_t optimizer_state = 0;  // of all buffers of the optimizer
    std::uint64_t statistics = 0;       // BatchNorm's running statistics
    bool operator==(const ReplicaHashes&) const = default;
};

/// Ranks of a group whose copies of the same model shard (stage and tensor-parallel shard) differ.
struct Divergence {
    std::int64_t step = 0;           // steps done
    std::vector<std::string> parts;  // differing "parameters", "optimizer state", "statistics"
    // In each affected shard, the replicas that differ from the majority, or all replicas if no
    // majority has equal hashes. Ascending.
    std::vector<int> group_ranks;
    int ranks = 0;                   // number of ranks that hold an affected shard
    std::int64_t passed_before = 0;  // number of audits that passed before
};

/// Returns nothing if all replicas of each shard have equal hashes. `shards` has the shard number
/// of each rank; each shard has the same number of ranks.
std::optional<Divergence> find_divergence(std::span<const ReplicaHashes> by_group_rank,
                                          std::span<const int> shards, std::int64_t step);

/// Thrown when replicas that must be bitwise equal differ. The message has group ranks.
class ReplicaDivergence : public Error {
public:
    explicit ReplicaDivergence(Divergence divergence);
    const Divergence& divergence() const { return divergence_; }

private:
    Divergence divergence_;
};

/// Compares the replicas of a group's model. All replicas apply the same sums of gradients, so
/// parameters and optimizer state must be bitwise equal. With pipeline stages or tensor
/// parallelism, only ranks with the same shard are compared, but all ranks audit together.
class ReplicaAudit {
public:
    /// An audit is due every `steps_between` steps; 0: never. Ranks of `group` with the same number
    /// in `shards` have the same shard. `device`, `store` and `group` must outlive the object.
    ReplicaAudit(std::int64_t steps_between, device::Device& device, graph::ParameterStore& store,
                 comm::Communicator& group, std::vector<int> shards)
        : steps_between_(steps_between),
          device_(device),
          store_(store),
          group_(group),
          shards_(std::move(shards)) {}

    /// Whether an audit is due after `step` steps. An audit waits for the device.
    bool is_due(std::int64_t step) const {
        return steps_between_ != 0 && step % steps_between_ == 0 && has_replicas();
    }

    /// Compares parameters and optimizer state after `step` steps. Throws ReplicaDivergence on all
    /// ranks if they differ. If `compares` is false, this shard is not compared; all its ranks must
    /// pass false. An audit that compares no shard does not count. Collective.
    void audit(std::int64_t step, bool compares = true);

    /// Like audit(), but also compares the averaged running statistics. Collective.
    void audit_final_state(std::int64_t step);

    /// Number of audits that passed; 0 if each rank has its own shard.
    std::int64_t passed() const { return passed_; }
    /// Sets the number of audits that passed before a resume.
    void restore(std::int64_t passed) { passed_ = passed; }

private:
    bool has_replicas() const { return std::ranges::count(shards_, shards_.front()) > 1; }
    std::uint64_t hash_optimizer_state();
    void compare(const ReplicaHashes& mine, std::int64_t step);

    std::int64_t steps_between_;
    device::Device& device_;
    graph::ParameterStore& store_;
    comm::Communicator& group_;
    std::vector<int> shards_;  // by group rank
    std::int64_t passed_ = 0;
};

}  // namespace hpcai::training
