// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <hpcai/records/run_record.hpp>

namespace hpcai::report {

/// A training setting under its name in MLPerf logs.
struct MllogSetting {
    std::string key;  // "opt_base_learning_rate"
    Quantity value;   // ignored if `text` is not empty
    std::string text = {};
};

/// `mllog/result_<m>.txt`: the events of group `group` in MLPerf's logging format, one line
/// `:::MLLOG {...}` each, ordered by time. Times are milliseconds since 1970, computed from the
/// record's start and durations; an event of unknown time has the time of the previous event.
/// run_stop is "success" if the group finished, else "aborted". A group that failed before training
/// has no epochs. `group` must be an index of the record's groups. Throws Error(data) for an
/// invalid time.started_utc.
std::string mllog(const RunRecord& record, std::size_t group,
                  const std::vector<MllogSetting>& settings);

}  // namespace hpcai::report
