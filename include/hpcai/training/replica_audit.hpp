// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <hpcai/base/error.hpp>
#include <hpcai/comm/communicator.hpp>
#include <hpcai/device/device.hpp>
#include <hpcai/graph/parameter_store.hpp>

namespace hpcai::training {

/// Device::hash of what one rank holds of its model. Zero stands for what was not compared.
struct ReplicaHashes {
    std::uint64_t parameters = 0;
    std::uint64_t optimizer_state = 0;  // of all buffers that the optimizer keeps
    std::uint64_t statistics = 0;
    bool operator==(const ReplicaHashes&) const = default;
};

/// Ranks of a group that hold different models, or different parameters of one slice of it: of a
/// stage, or of a part of its channels.
struct Divergence {
    std::int64_t step = 0;           // steps done
    std::vector<std::string> parts;  // that differ: "parameters", "optimizer state", "statistics"
    std::vector<int> group_ranks;    // ascending; those that disagree with more than half of the
                                     // replicas of their slice where so many agree, else all these
    int ranks = 0;                   // of the slices with such ranks
    std::int64_t passed_before = 0;  // audits
};

/// What differs, and which ranks are named; nothing when the hashes of each slice are equal.
/// `slices` has the slice that each rank holds, of each as many ranks.
std::optional<Divergence> find_divergence(std::span<const ReplicaHashes> by_group_rank,
                                          std::span<const int> slices, std::int64_t step);

/// Replicas differ that must be the same bit for bit. The message speaks of group ranks.
class ReplicaDivergence : public Error {
public:
    explicit ReplicaDivergence(Divergence divergence);
    const Divergence& divergence() const { return divergence_; }

private:
    Divergence divergence_;
};

/// Compares what the ranks of a group hold of the model they train together: each knows the sums of
/// all gradients, so its parameters and its optimizer's state must be the others' bit for bit. In a
/// pipeline that holds for the ranks of each stage, and of each part; all audit together.
class ReplicaAudit {
public:
    /// An audit is due every `steps_between` steps; 0: never. Ranks of `group` with the same
    /// number in `slices` hold the same. What is given outlives the object.
    ReplicaAudit(std::int64_t steps_between, device::Device& device, graph::ParameterStore& store,
                 comm::Communicator& group, std::vector<int> slices)
        : steps_between_(steps_between),
          device_(device),
          store_(store),
          group_(group),
          slices_(std::move(slices)) {}

    /// Whether after_step(step) will compare, for which it waits for the device.
    bool is_due(std::int64_t step) const {
        return steps_between_ != 0 && step % steps_between_ == 0 && has_replicas();
    }

    /// Compares parameters and optimizer state when that is due after `step` steps. Throws
    /// ReplicaDivergence on all ranks. Collective.
    void after_step(std::int64_t step) {
        if (is_due(step)) now(step);
    }

    /// The same whether it is due or not. A rank may leave out what it holds (`compares`) if all of
    /// its slice do; an audit that compares nothing is none.
    void now(std::int64_t step, bool compares = true);

    /// Compares parameters, optimizer state and running statistics, once the ranks have averaged
    /// these. Throws likewise. Collective.
    void at_the_end(std::int64_t step);

    /// Audits in which all ranks agreed; where each holds something else there are none.
    std::int64_t passed() const { return passed_; }
    /// Counts those of the program that this one goes on for.
    void restore(std::int64_t passed) { passed_ = passed; }

private:
    bool has_replicas() const { return std::ranges::count(slices_, slices_.front()) > 1; }
    std::uint64_t hash_of_states();
    void compare(const ReplicaHashes& mine, std::int64_t step);

    std::int64_t steps_between_;
    device::Device& device_;
    graph::ParameterStore& store_;
    comm::Communicator& group_;
    std::vector<int> slices_;  // by group rank
    std::int64_t passed_ = 0;
};

}  // namespace hpcai::training
