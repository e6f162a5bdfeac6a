// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "hpcai/comm/communicator.hpp"
#include "hpcai/device/statistics_sum.hpp"

namespace hpcai::comm {

/// What sums of statistics have cost this rank.
struct StatisticsAccounting {
    std::int64_t sums = 0;
    std::int64_t bytes = 0;  // that entered them
    double seconds = 0;      // in them, which nothing hides
};

/// Consecutive ranks of a group that take their BatchNorm statistics together: ranks 0 to
/// `ranks` - 1, and so on. Networks are planned with it before their group is there.
class StatisticsSpan final : public device::StatisticsSum {
public:
    explicit StatisticsSpan(int ranks);

    /// `group`, whose size is a multiple of ranks(), outlives it. Collective in the group, once,
    /// before the first sum.
    void connect(Communicator& group);

    int ranks() const override { return ranks_; }
    /// Throws as Communicator does, also what a rank of another span has announced to the group.
    void sum(std::span<double> values) override;
    const StatisticsAccounting& accounting() const { return accounting_; }

private:
    int ranks_;
    Communicator* group_ = nullptr;
    std::unique_ptr<Communicator> span_;
    StatisticsAccounting accounting_;
};

}  // namespace hpcai::comm
