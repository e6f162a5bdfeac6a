// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include <hpcai/records/record_fields.hpp>

/// What meters and counters of the nodes say of a run. Plain data; part of the RunRecord.
namespace hpcai {

/// One reading of a counter that only grows, since a beginning of its own.
struct CounterReading {
    double utc_seconds = 0;  // since 1970
    double value = 0;        // joules or bytes, as the counter has them
    HPCAI_RECORD(CounterReading, utc_seconds, value);
};

/// What one group read of one counter of one node while it trained.
struct CounterRecord {
    std::string host;
    std::string name;                      // "nvml:0", "rapl:package-0", "net:eth0:sent"
    std::string unit;                      // "J", "B"
    std::string failure;                   // why there are no readings; empty: there are
    std::vector<CounterReading> readings;  // in order of time
    HPCAI_RECORD(CounterRecord, host, name, unit, failure, readings);
};

/// What one meter measured of the core phase, from the readings of all groups on its node.
struct MeterRecord {
    std::string host;
    std::string name;
    Quantity joules;
    HPCAI_RECORD(MeterRecord, host, name, joules);
};

struct EnergyRecord {
    std::string source;  // the meters; empty: none
    std::string method;  // what was read, how often, what it leaves out
    std::string level;   // against the levels of the EE HPC WG's methodology, in words
    Quantity joules;     // of the core phase, all nodes
    Quantity average_watts;
    std::string core_begin_utc;  // ISO 8601: the first group's first step ...
    std::string core_end_utc;    // ... and the last group's last one, for an external meter
    std::vector<MeterRecord> meters;
    HPCAI_RECORD(EnergyRecord, source, method, level, joules, average_watts, core_begin_utc,
                 core_end_utc, meters);
};

/// Bytes that one node's network interfaces counted in the core phase, of all programs on it.
struct InterfaceRecord {
    std::string host;
    std::string name;
    Quantity sent_bytes;
    Quantity received_bytes;
    HPCAI_RECORD(InterfaceRecord, host, name, sent_bytes, received_bytes);
};

}  // namespace hpcai
