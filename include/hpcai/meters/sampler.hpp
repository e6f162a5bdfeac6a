// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <thread>

#include <hpcai/meters/counter.hpp>
#include <hpcai/meters/utc.hpp>
#include <hpcai/records/group_record.hpp>

namespace hpcai::meters {

struct RepeaterCallbacks {
    std::function<void()> begin = [] {};  // called once, first
    std::function<void()> repeat;
    std::function<void()> end = [] {};  // called once, last
    double interval_seconds = 1;
};

/// Runs callbacks, which must not throw, in a separate thread from construction on. A callback may
/// hang, for example in the driver of a lost GPU. It must own or share all objects that it uses.
class Repeater {
public:
    explicit Repeater(RepeaterCallbacks callbacks);
    /// Calls stop_within(5).
    ~Repeater();

    /// Stops the callbacks. Returns true after `end` has been called; no callback runs from then
    /// on. If that takes longer than `seconds`, returns false and detaches the thread.
    bool stop_within(double seconds);

private:
    struct State;
    static void run(State& state, const RepeaterCallbacks& callbacks);

    std::shared_ptr<State> state_;
    std::thread thread_;
    bool has_stopped_ = false;
};

/// Readings of the counters of one node. Keeps at most kMaxReadings of each counter, about evenly
/// spaced, and always the first and the last.
class CounterLog {
public:
    static constexpr std::size_t kMaxReadings = 16;

    CounterLog(std::string host, std::vector<Counter> counters);

    /// Reads every counter; `utc_seconds` must not decrease. A counter that fails, decreases, or is
    /// negative or not finite loses its readings and is not read again.
    void sample(double utc_seconds);

    /// Returns one record per counter, in the order of construction.
    std::vector<CounterRecord> records() const;

private:
    struct Series {
        Counter counter;
        std::vector<CounterReading> kept;
        CounterReading latest;
    };

    void sample(Series& series, double utc_seconds) const;

    std::string host_;
    std::vector<Series> series_;
    std::size_t samples_ = 0;
    std::size_t stride_ = 1;  // every stride_-th reading is kept
};

/// Samples counters from construction on. A separate thread takes all samples except the first,
/// because a driver may hang.
class Sampler {
public:
    /// Takes the first sample; the thread takes one every `interval_seconds`.
    Sampler(CounterLog log, double interval_seconds);

    /// Takes the last sample and returns all records. If that takes longer than `timeout_seconds`,
    /// each record has a failure instead of readings. May be called once.
    std::vector<CounterRecord> finish(double timeout_seconds);

private:
    struct Reader {
        UtcClock clock;
        CounterLog log;
        void sample() { log.sample(clock.seconds()); }
    };
    std::shared_ptr<Reader> reader_;
    std::vector<CounterRecord> records_if_hanging_;  // returned by finish() if the thread hangs
    std::optional<Repeater> repeater_;
};

}  // namespace hpcai::meters
