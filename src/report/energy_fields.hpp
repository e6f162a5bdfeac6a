// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <hpcai/base/energy_record.hpp>

#include "roofline_fields.hpp"

/// Every key of what meters and counters say, once.
namespace hpcai::report {

void describe(auto& fields, Any<CounterReading> auto& reading) {
    fields("utc_seconds", reading.utc_seconds);
    fields("value", reading.value);
}

void describe(auto& fields, Any<CounterRecord> auto& counter) {
    fields("host", counter.host);
    fields("name", counter.name);
    fields("unit", counter.unit);
    fields("failure", counter.failure);
    fields("readings", counter.readings);
}

void describe(auto& fields, Any<MeterRecord> auto& meter) {
    fields("host", meter.host);
    fields("name", meter.name);
    fields("joules", meter.joules);
}

void describe(auto& fields, Any<EnergyRecord> auto& energy) {
    fields("source", energy.source);
    fields("method", energy.method);
    fields("level", energy.level);
    fields("joules", energy.joules);
    fields("average_watts", energy.average_watts);
    fields("core_begin_utc", energy.core_begin_utc);
    fields("core_end_utc", energy.core_end_utc);
    fields("meters", energy.meters);
}

void describe(auto& fields, Any<InterfaceRecord> auto& interface) {
    fields("host", interface.host);
    fields("name", interface.name);
    fields("sent_bytes", interface.sent_bytes);
    fields("received_bytes", interface.received_bytes);
}

}  // namespace hpcai::report
