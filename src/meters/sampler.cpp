// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <utility>

#include <fmt/core.h>

#include <hpcai/base/error.hpp>
#include <hpcai/meters/sampler.hpp>

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
                "it decreased from {} to {}", row.latest.value, value);
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
    // Readings are thinned before the limit, because the last one is added if it was not kept.
    if ((taken_ - 1) / stride_ + 1 < kMaxReadings) return;
    stride_ *= 2;
    for (Row& row : rows_) {
        std::size_t index = 0;
        std::erase_if(row.kept, [&index](const auto&) { return index++ % 2 == 1; });
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

Sampler::Sampler(CounterLog log, double interval_seconds)
    : reader_(std::make_shared<Reader>(Reader{{}, std::move(log)})),
      unread_(reader_->log.records()) {
    reader_->take();
    repeater_.emplace(RepeaterCallbacks{.repeat = [reader = reader_] { reader->take(); },
                                        .end = [reader = reader_] { reader->take(); },
                                        .interval_seconds = interval_seconds});
}

std::vector<CounterRecord> Sampler::finish(double timeout_seconds) {
    if (repeater_->stop_within(timeout_seconds)) return reader_->log.records();
    for (CounterRecord& one : unread_) {
        if (!one.failure.empty()) continue;
        one.failure = fmt::format("it was not read within {} s", timeout_seconds);
    }
    return std::move(unread_);
}

}  // namespace hpcai::meters
