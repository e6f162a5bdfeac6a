// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include <hpcai/base/run_record.hpp>
#include <hpcai/comm/communicator.hpp>
#include <hpcai/meters/sampler.hpp>

#include "run_context.hpp"

namespace hpcai::benchmark {

/// The meters and interfaces of this rank's node, where the configuration asks for them and this
/// rank is the first of its group there; else none. Opens what is slow to open.
std::vector<meters::Counter> find_counters(const Start& start);

/// Reads start.counters while a group trains, in a thread of its own.
class CoreCounters {
public:
    /// The first reading; the group's clock has just started.
    explicit CoreCounters(const Start& start);

    /// The last reading, of this rank.
    std::vector<CounterRecord> finish();

    /// After the last step; at the leader what all ranks have read, and its steps, else nothing.
    /// Collective in the group.
    std::vector<CounterRecord> gather(comm::Communicator& group,
                                      const std::vector<CounterRecord>& mine,
                                      const GroupRecord& record) const;

private:
    const Start& start_;
    double begin_utc_seconds_;
    std::optional<meters::Sampler> sampler_;
};

}  // namespace hpcai::benchmark
