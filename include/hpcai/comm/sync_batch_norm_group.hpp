// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <hpcai/comm/communicator.hpp>
#include <hpcai/comm/gradient_reducer.hpp>
#include <hpcai/device/sync_batch_norm_reducer.hpp>

namespace hpcai::comm {

/// What sums of statistics have cost this rank.
struct StatisticsAccounting {
    std::int64_t sums = 0;
    std::int64_t bytes = 0;  // that entered them
    SentBytes sent;
    double seconds = 0;  // in them, which nothing hides
};

/// Consecutive ranks of a group that take their BatchNorm statistics together: ranks 0 to
/// `ranks` - 1, and so on. Networks are planned with it before their group is there. Sums are the
/// same bits on all ranks of a span and in every run.
class SyncBatchNormGroup final : public device::SyncBatchNormReducer {
public:
    explicit SyncBatchNormGroup(int ranks);

    /// Before the first sum. `group`, whose size is a multiple of ranks() and which outlives all
    /// sums; its ranks are on these nodes.
    void connect(Communicator& group, std::vector<int> node_of_rank);

    int ranks() const override { return ranks_; }
    /// Throws as Communicator does, also what a rank of another span has announced to the group.
    void sum(std::span<double> values) override;
    const StatisticsAccounting& accounting() const { return accounting_; }

private:
    struct Messages;

    void exchange(const std::vector<int>& members, std::span<double> values);

    int ranks_;
    Communicator* group_ = nullptr;
    std::vector<int> node_of_rank_;
    std::vector<std::vector<int>> rounds_;
    std::shared_ptr<Messages> messages_;
    StatisticsAccounting accounting_;
};

/// What each rank of a group on these nodes sends for a sum of `bytes` over spans of `ranks`, as
/// SyncBatchNormGroup makes it: with the prime factors p of `ranks`, (p - 1) x bytes for each.
std::vector<SentBytes> statistics_traffic(int ranks, std::span<const int> node_of_rank,
                                          std::int64_t bytes);

}  // namespace hpcai::comm
