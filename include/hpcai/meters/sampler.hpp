// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <hpcai/meters/counter.hpp>
#include <hpcai/meters/repeater.hpp>
#include <hpcai/meters/utc.hpp>
#include <hpcai/records/group_record.hpp>

namespace hpcai::meters {

/// Readings of the counters of one node. Keeps at most kMaxReadings of each counter, about evenly
/// spaced, always with the first and the last.
class CounterLog {
public:
    static constexpr std::size_t kMaxReadings = 16;

    CounterLog(std::string host, std::vector<Counter> counters);

    /// Reads every counter; `utc_seconds` must not decrease. A counter that fails, decreases, or is
    /// negative or not finite loses its readings and is not read again.
    void take(double utc_seconds);

    /// Returns one record per counter, in their order.
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
    std::size_t stride_ = 1;  // every stride_-th reading is kept
};

/// Samples counters from construction on. All samples but the first are taken in a separate thread,
/// because a driver may hang.
class Sampler {
public:
    /// Returns after the first sample; others follow every `interval_seconds`.
    Sampler(CounterLog log, double interval_seconds);
    Sampler(const Sampler&) = delete;
    Sampler& operator=(const Sampler&) = delete;

    /// Takes the last sample and returns all records. If that takes longer than `timeout_seconds`,
    /// each record has a failure instead of readings. Call once.
    std::vector<CounterRecord> finish(double timeout_seconds);

private:
    struct Reader {
        UtcClock clock;
        CounterLog log;
        void take() { log.take(clock.seconds()); }
    };
    std::shared_ptr<Reader> reader_;
    std::vector<CounterRecord> unread_;
    std::optional<Repeater> repeater_;
};

}  // namespace hpcai::meters
