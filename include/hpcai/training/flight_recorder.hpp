// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>

#include <hpcai/records/flight_record.hpp>

namespace hpcai::training {

/// Remembers the last phases and sums of a rank. One thread tells it; put_into() may be called
/// by any other at the same time.
class FlightRecorder {
public:
    static constexpr std::size_t kEvents = 256;

    /// `now`: seconds on the group's clock; asked by the thread that tells.
    explicit FlightRecorder(std::function<double()> now) : now_(std::move(now)) {}

    /// A phase begins, and the one before ends. `name` lives as long as the program.
    void enter(const char* name);
    /// The sum of a bucket's gradients over ranks: `bytes` of this one.
    void begin_sum(std::size_t bucket, std::size_t bytes);
    void end_sum(std::size_t bucket);
    /// `steps_done` are done, of all epochs and programs.
    void step_done(std::int64_t steps_done);

    /// Counts and events; the rest is left as it is.
    void put_into(FlightRecord& record) const;

private:
    struct Event {
        std::int64_t step = 0;
        const char* phase = nullptr;  // null: a sum
        std::size_t bucket = 0;
        std::size_t bytes = 0;
        double begin_seconds = 0;
        double end_seconds = -1;  // below 0: it has not ended
    };

    Event& add();
    /// The newest that `is_it`; null: it is not among the last.
    Event* newest(const std::function<bool(const Event&)>& is_it);

    std::function<double()> now_;
    mutable std::mutex mutex_;
    std::array<Event, kEvents> events_{};
    std::uint64_t added_ = 0;
    std::int64_t steps_done_ = 0, sums_begun_ = 0, sums_ended_ = 0;
};

}  // namespace hpcai::training
