// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include <hpcai/records/run_record.hpp>

namespace hpcai::report {

/// A setting of the training, under the name that MLPerf's logs have for it.
struct MllogSetting {
    std::string key;  // "opt_base_learning_rate"
    Quantity value;   // without one, `text` is meant
    std::string text = {};
};

/// `mllog/result_<m>.txt`: what group `group` did, in MLPerf's logging format, a line
/// `:::MLLOG {...}` for each event, ordered by time. Times are milliseconds since 1970, formed of
/// the record's start and its durations; an event whose time the record does not have stands at the
/// latest known one before it. run_stop is "success" where the group finished, else "aborted". A
/// group that failed before it trained has no epochs. docs/METRICS.md lists the keys. `group` must
/// be one of the record's.
std::string mllog(const RunRecord& record, std::size_t group,
                  const std::vector<MllogSetting>& settings);

}  // namespace hpcai::report
