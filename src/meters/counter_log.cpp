// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <utility>

#include <hpcai/base/error.hpp>
#include <hpcai/meters/counter_log.hpp>

namespace hpcai::meters {

CounterLog::CounterLog(std::string host, std::vector<Counter> counters) : host_(std::move(host)) {
    for (Counter& counter : counters) rows_.push_back({std::move(counter), {}, {}});
}

void CounterLog::take(Row& row, double utc_seconds) const {
    Counter& counter = row.counter;
    if (!counter.failure.empty()) return;
    try {
        const double value = counter.read();
        require(std::isfinite(value) && value >= 0, ExitCode::data, "its value is {}", value);
        require(row.kept.empty() || value >= row.latest.value, ExitCode::data,
                "it went back from {} to {}", row.latest.value, value);
        row.latest = {utc_seconds, value};
        if (taken_ % stride_ == 0) row.kept.push_back(row.latest);
    } catch (const Error& error) {
        counter.failure = error.what();
        row.kept.clear();
    }
}

void CounterLog::take(double utc_seconds) {
    for (Row& row : rows_) take(row, utc_seconds);
    ++taken_;
    // Room for the last reading, which may be none of those kept.
    if ((taken_ - 1) / stride_ + 1 < kMaxReadings) return;
    stride_ *= 2;
    for (Row& row : rows_) {
        std::vector<CounterReading> every_second;
        for (std::size_t index = 0; index < row.kept.size(); index += 2) {
            every_second.push_back(row.kept[index]);
        }
        row.kept = std::move(every_second);
    }
}

std::vector<CounterRecord> CounterLog::records() const {
    std::vector<CounterRecord> records;
    for (const Row& row : rows_) {
        const Counter& counter = row.counter;
        records.push_back({host_, counter.name, counter.unit, counter.failure, row.kept});
        if (row.kept.empty() || row.kept.back() == row.latest) continue;
        records.back().readings.push_back(row.latest);
    }
    return records;
}

}  // namespace hpcai::meters
