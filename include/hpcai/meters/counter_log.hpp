// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <hpcai/meters/counter.hpp>
#include <hpcai/records/group_record.hpp>

namespace hpcai::meters {

/// Readings of some counters of one node. Of many it keeps some, in about equal distances, and
/// always the first and the last.
class CounterLog {
public:
    static constexpr std::size_t kMaxReadings = 16;

    CounterLog(std::string host, std::vector<Counter> counters);

    /// Reads every counter at `utc_seconds`, which never go back. A counter that cannot be read, or
    /// whose value is less than before, is not read again.
    void take(double utc_seconds);

    /// A record for each counter, in their order.
    std::vector<CounterRecord> records() const;

private:
    struct Row {
        Counter counter;
        std::vector<CounterReading> kept;
        CounterReading latest;
    };

    void take(Row& row, double utc_seconds) const;

    std::string host_;
    std::vector<Row> rows_;
    std::size_t taken_ = 0;
    std::size_t stride_ = 1;  // every so many readings are kept
};

}  // namespace hpcai::meters
