// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <mutex>

#include <hpcai/records/flight_record.hpp>

namespace hpcai::training {

/// Records the last phases and all-reduces of a rank. Other threads may only call fill_record().
class FlightRecorder {
public:
    static constexpr std::size_t kMaxEvents = 256;

    /// `now` returns seconds on the group's clock. The recording thread calls it.
    explicit FlightRecorder(std::function<double()> now) : now_(std::move(now)) {}

    /// Begins a phase and ends the previous phase. `name` must stay valid until the program ends.
    void enter(const char* name);
    /// Begins the all-reduce of a bucket, whose gradients take `bytes` bytes on this rank.
    void begin_all_reduce(std::size_t bucket, std::size_t bytes);
    void end_all_reduce(std::size_t bucket);
    /// Sets the number of steps done, including those before a resume.
    void step_done(std::int64_t steps_done);

    /// Sets the counts and events of `record`; its other members stay unchanged.
    void fill_record(FlightRecord& record) const;

private:
    struct Event {
        std::int64_t step = 0;
        const char* phase = nullptr;  // null: the event is an all-reduce
        std::size_t bucket = 0;
        std::size_t bytes = 0;
        double begin_seconds = 0;
        double end_seconds = -1;  // below 0: not ended
    };

    void add(Event event);
    /// Returns the newest recorded event for which `predicate` is true, or null.
    Event* newest(const std::function<bool(const Event&)>& predicate);

    std::function<double()> now_;
    mutable std::mutex mutex_;
    std::array<Event, kMaxEvents> events_{};
    std::uint64_t added_ = 0;
    std::int64_t steps_done_ = 0, all_reduces_started_ = 0, all_reduces_finished_ = 0;
};

}  // namespace hpcai::training
