// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <utility>

#include <fmt/core.h>

#include <hpcai/base/error.hpp>
#include <hpcai/meters/sampler.hpp>

namespace hpcai::meters {

CounterLog::CounterLog(std::string host, std::vector<Counter> counters) : host_(std::move(host)) {
    for (Counter& counter : counters) series_.push_back({std::move(counter), {}, {}});
}

void CounterLog::sample(Series& series, double utc_seconds) const {
    Counter& counter = series.counter;
    if (!counter.failure.empty()) return;
    try {
        const double value = counter.read();
        require(std::isfinite(value) && value >= 0, ExitCode::data, "its value is {}", value);
        require(series.kept.empty() || value >= series.latest.value, ExitCode::data,
                "it decreased from {} to {}", series.latest.value, value);
        series.latest = {utc_seconds, value};
        if (samples_ % stride_ == 0) series.kept.push_back(series.latest);
    } catch (const Error& error) {
        counter.failure = error.what();
        series.kept.clear();
    }
}

void CounterLog::sample(double utc_seconds) {
    for (Series& series : series_) sample(series, utc_seconds);
    ++samples_;
    // Keeps fewer than kMaxReadings, because records() may add the latest reading.
    if ((samples_ - 1) / stride_ + 1 < kMaxReadings) return;
    stride_ *= 2;
    for (Series& series : series_) {
        std::size_t index = 0;
        std::erase_if(series.kept, [&index](const auto&) { return index++ % 2 == 1; });
    }
}

std::vector<CounterRecord> CounterLog::records() const {
    std::vector<CounterRecord> records;
    for (const Series& series : series_) {
        const Counter& counter = series.counter;
        records.push_back({host_, counter.name, counter.unit, counter.failure, series.kept});
        if (series.kept.empty() || series.kept.back() == series.latest) continue;
        records.back().readings.push_back(series.latest);
    }
    return records;
}

Sampler::Sampler(CounterLog log, double interval_seconds)
    : reader_(std::make_shared<Reader>(Reader{{}, std::move(log)})),
      unread_records_(reader_->log.records()) {
    reader_->sample();
    repeater_.emplace(RepeaterCallbacks{.repeat = [reader = reader_] { reader->sample(); },
                                        .end = [reader = reader_] { reader->sample(); },
                                        .interval_seconds = interval_seconds});
}

std::vector<CounterRecord> Sampler::finish(double timeout_seconds) {
    if (repeater_->stop_within(timeout_seconds)) return reader_->log.records();
    for (CounterRecord& record : unread_records_) {
        if (!record.failure.empty()) continue;
        record.failure = fmt::format("it was not read within {} s", timeout_seconds);
    }
    return std::move(unread_records_);
}

}  // namespace hpcai::meters
