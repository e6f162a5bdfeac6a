// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <hpcai/records/record_fields.hpp>

/// The last activities of a rank.
namespace hpcai {

/// A phase of a step, or an all-reduce.
struct FlightEvent {
    std::int64_t step = 0;     // from 0, over all epochs
    std::string what;          // phase, such as "forward"; "sum 2": all-reduce of bucket 2
    std::int64_t bytes = 0;    // payload of one rank in an all-reduce
    double begin_seconds = 0;  // by the clock of the group
    Quantity end_seconds;      // by the same clock; no value: the event has not ended
    HPCAI_RECORD(FlightEvent, step, what, bytes, begin_seconds, end_seconds);
};

/// `groups/<m>/flight/rank-<r>.json`. A rank, or its watchdog, writes this file when a rank of the
/// group hangs or has died.
struct FlightRecord {
    std::string schema = "hpcai500-flight/2";
    int group = 0;
    int group_rank = 0;
    int world_rank = 0;
    std::string host;
    std::int64_t process = 0;  // PID on the host
    std::string reason;
    bool answers = false;  // true: the training thread wrote this file; false: the watchdog did
    std::int64_t steps_done = 0;
    std::int64_t all_reduces_started = 0;
    std::int64_t all_reduces_finished = 0;
    double silent_seconds = 0;        // since the last complete step
    std::vector<FlightEvent> events;  // the last 256, oldest first
    HPCAI_RECORD(FlightRecord, schema, group, group_rank, world_rank, host, process, reason,
                 answers, steps_done, all_reduces_started, all_reduces_finished, silent_seconds,
                 events);
};

}  // namespace hpcai
