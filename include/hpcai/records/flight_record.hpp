// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <hpcai/records/record_fields.hpp>

/// What a rank did last. Plain data.
namespace hpcai {

/// A phase of a step, or a sum over ranks.
struct FlightEvent {
    std::int64_t step = 0;     // from 0, over all epochs
    std::string what;          // "input_wait", "forward", ..., "sum 2": of the bucket
    std::int64_t bytes = 0;    // of a sum, one rank's
    double begin_seconds = 0;  // on the group's clock
    Quantity end_seconds;      // likewise
    HPCAI_RECORD(FlightEvent, step, what, bytes, begin_seconds, end_seconds);
};

/// `groups/<m>/flight/rank-<r>.json`, which each rank of a group writes that still can, when one of
/// them no longer goes on.
struct FlightRecord {
    std::string schema = "hpcai500-flight/1";
    int group = 0;
    int group_rank = 0;
    int world_rank = 0;
    std::string host;
    std::int64_t process = 0;  // its number on the host
    std::string reason;
    bool answers = false;  // it has noticed itself; else its watchdog alone has written this
    std::int64_t steps_done = 0;
    std::int64_t sums_begun = 0;
    std::int64_t sums_ended = 0;
    double silent_seconds = 0;        // since the last step was done
    std::vector<FlightEvent> events;  // the last 256, oldest first
    HPCAI_RECORD(FlightRecord, schema, group, group_rank, world_rank, host, process, reason,
                 answers, steps_done, sums_begun, sums_ended, silent_seconds, events);
};

}  // namespace hpcai
