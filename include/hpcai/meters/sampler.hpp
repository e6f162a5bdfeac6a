// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include <hpcai/meters/counter_log.hpp>
#include <hpcai/meters/utc.hpp>

namespace hpcai::meters {

/// Reads counters from its construction on, in a thread of its own.
class Sampler {
public:
    /// The first reading is done when this returns; others follow every `seconds_between`.
    Sampler(CounterLog log, double seconds_between);
    Sampler(const Sampler&) = delete;
    Sampler& operator=(const Sampler&) = delete;
    ~Sampler();

    /// Reads for the last time; returns what was read. To be called once.
    std::vector<CounterRecord> finish();

private:
    void run(double seconds_between);
    void stop();

    UtcClock clock_;
    CounterLog log_;
    std::mutex mutex_;
    std::condition_variable wake_;
    bool stops_ = false;
    std::thread thread_;
};

}  // namespace hpcai::meters
