// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <hpcai/base/flight_record.hpp>

#include "fields.hpp"

/// Every key of `groups/<m>/flight/rank-<r>.json`, once.
namespace hpcai::report {

void describe(auto& fields, Any<FlightEvent> auto& event) {
    fields("step", event.step);
    fields("what", event.what);
    fields("bytes", event.bytes);
    fields("begin_seconds", event.begin_seconds);
    fields("end_seconds", event.end_seconds);
}

void describe(auto& fields, Any<FlightRecord> auto& record) {
    fields("schema", record.schema);
    fields("group", record.group);
    fields("group_rank", record.group_rank);
    fields("world_rank", record.world_rank);
    fields("host", record.host);
    fields("process", record.process);
    fields("reason", record.reason);
    fields("answers", record.answers);
    fields("steps_done", record.steps_done);
    fields("sums_begun", record.sums_begun);
    fields("sums_ended", record.sums_ended);
    fields("silent_seconds", record.silent_seconds);
    fields("events", record.events);
}

}  // namespace hpcai::report
