// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <condition_variable>
#include <mutex>

#include <fmt/core.h>

#include <hpcai/base/error.hpp>
#include <hpcai/meters/sampler.hpp>

namespace hpcai::meters {
namespace {

constexpr double kStopTimeoutSeconds = 5;

using Seconds = std::chrono::duration<double>;

}  // namespace

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
      records_if_hanging_(reader_->log.records()) {
    reader_->sample();
    repeater_.emplace(RepeaterCallbacks{.repeat = [reader = reader_] { reader->sample(); },
                                        .end = [reader = reader_] { reader->sample(); },
                                        .interval_seconds = interval_seconds});
}

std::vector<CounterRecord> Sampler::finish(double timeout_seconds) {
    if (repeater_->stop_within(timeout_seconds)) return reader_->log.records();
    for (CounterRecord& record : records_if_hanging_) {
        if (!record.failure.empty()) continue;
        record.failure = fmt::format("it was not read within {} s", timeout_seconds);
    }
    return std::move(records_if_hanging_);
}

struct Repeater::State {
    std::mutex mutex;
    std::condition_variable wake;
    bool stop_requested = false;
    bool has_ended = false;
};

Repeater::Repeater(RepeaterCallbacks callbacks)
    : state_(std::make_shared<State>()),
      thread_([state = state_, callbacks = std::move(callbacks)] { run(*state, callbacks); }) {}

Repeater::~Repeater() {
    stop_within(kStopTimeoutSeconds);
}

void Repeater::run(State& state, const RepeaterCallbacks& callbacks) {
    callbacks.begin();
    std::unique_lock lock(state.mutex);
    while (!state.wake.wait_for(lock, Seconds(callbacks.interval_seconds),
                                [&state] { return state.stop_requested; })) {
        lock.unlock();  // so that a hanging callback does not block stop_within()
        callbacks.repeat();
        lock.lock();
    }
    lock.unlock();
    callbacks.end();
    lock.lock();
    state.has_ended = true;
    state.wake.notify_all();
}

bool Repeater::stop_within(double seconds) {
    if (!thread_.joinable()) return has_stopped_;
    {
        std::unique_lock lock(state_->mutex);
        state_->stop_requested = true;
        state_->wake.notify_all();
        has_stopped_ =
            state_->wake.wait_for(lock, Seconds(seconds), [this] { return state_->has_ended; });
    }
    if (has_stopped_) {
        thread_.join();
    } else {
        thread_.detach();
    }
    return has_stopped_;
}

}  // namespace hpcai::meters
