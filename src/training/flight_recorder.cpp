// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <hpcai/training/flight_recorder.hpp>

namespace hpcai::training {

void FlightRecorder::enter(const char* name) {
    const double now = now_();
    const std::lock_guard lock(mutex_);
    const auto is_phase = [](const Event& event) { return event.phase != nullptr; };
    if (Event* const last = newest(is_phase); last != nullptr && last->end_seconds < 0) {
        last->end_seconds = now;
    }
    add({.phase = name, .begin_seconds = now});
}

void FlightRecorder::begin_all_reduce(std::size_t bucket, std::size_t bytes) {
    const double now = now_();
    const std::lock_guard lock(mutex_);
    add({.bucket = bucket, .bytes = bytes, .begin_seconds = now});
    ++all_reduces_started_;
}

void FlightRecorder::end_all_reduce(std::size_t bucket) {
    const double now = now_();
    const std::lock_guard lock(mutex_);
    ++all_reduces_finished_;
    Event* const started = newest([&](const Event& event) {
        return event.phase == nullptr && event.bucket == bucket && event.end_seconds < 0;
    });
    if (started != nullptr) started->end_seconds = now;
}

void FlightRecorder::step_done(std::int64_t steps_done) {
    const std::lock_guard lock(mutex_);
    steps_done_ = steps_done;
}

void FlightRecorder::fill_record(FlightRecord& record) const {
    const std::lock_guard lock(mutex_);
    record.steps_done = steps_done_;
    record.all_reduces_started = all_reduces_started_;
    record.all_reduces_finished = all_reduces_finished_;
    record.events.clear();
    const std::uint64_t kept = std::min<std::uint64_t>(added_, kMaxEvents);
    for (std::uint64_t number = added_ - kept; number < added_; ++number) {
        const Event& event = events_[number % kMaxEvents];
        const bool has_ended = event.end_seconds >= 0;
        record.events.push_back(
            {event.step, event.phase != nullptr ? event.phase : fmt::format("sum {}", event.bucket),
             static_cast<std::int64_t>(event.bytes), event.begin_seconds,
             has_ended ? Quantity{event.end_seconds, ""} : no_value("has not ended")});
    }
}

void FlightRecorder::add(Event event) {
    event.step = steps_done_;
    events_[added_++ % kMaxEvents] = event;
}

FlightRecorder::Event* FlightRecorder::newest(const std::function<bool(const Event&)>& predicate) {
    const std::uint64_t kept = std::min<std::uint64_t>(added_, kMaxEvents);
    for (std::uint64_t back = 1; back <= kept; ++back) {
        Event& event = events_[(added_ - back) % kMaxEvents];
        if (predicate(event)) return &event;
    }
    return nullptr;
}

}  // namespace hpcai::training
