// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <hpcai/comm/communicator.hpp>
#include <hpcai/comm/gradient_reducer.hpp>
#include <hpcai/device/rank_exchange.hpp>

namespace hpcai::comm {

/// Costs of the all-reduces of BatchNorm statistics on this rank.
struct SyncBatchNormAccounting {
    std::int64_t sums = 0;   // number of all-reduces
    std::int64_t bytes = 0;  // of the reduced values
    SentBytes sent;
    double seconds = 0;  // spent in all-reduces, which do not overlap with computation
};

/// All-reduces BatchNorm statistics over sets of `ranks` consecutive ranks of a communicator; the
/// first set begins with rank 0. A network can be made with this object before the communicator
/// exists. Sums have the same bits on all ranks of a set and in every run.
class SyncBatchNormGroup final : public device::SyncBatchNormReducer {
public:
    explicit SyncBatchNormGroup(int ranks);

    /// Call it before the first sum(). `group` must outlive all calls, and its size must be a
    /// multiple of ranks(). `node_of_rank` has the node of each rank of `group`.
    void connect(Communicator& group, std::vector<int> node_of_rank);

    int ranks() const override { return ranks_; }
    /// All-reduces `values` over this rank's set. Throws as Communicator does, also if a rank of
    /// another set announced a failure.
    void sum(std::span<double> values) override;
    const SyncBatchNormAccounting& accounting() const { return accounting_; }

private:
    void exchange(const std::vector<int>& members, std::span<double> values);

    int ranks_;
    Communicator* group_ = nullptr;
    std::vector<int> node_of_rank_;
    std::vector<std::vector<int>> rounds_;  // this rank and its partners in each round of sum()
    // the values of all ranks of a round; shared because late messages may still use them
    std::shared_ptr<std::vector<double>> terms_;
    SyncBatchNormAccounting accounting_;
};

/// Returns the bytes that each rank sends in an all-reduce of `bytes` over sets of `ranks` ranks:
/// (p - 1) x bytes for each prime factor p of `ranks`.
std::vector<SentBytes> sync_batch_norm_traffic(int ranks, std::span<const int> node_of_rank,
                                               std::int64_t bytes);

}  // namespace hpcai::comm
