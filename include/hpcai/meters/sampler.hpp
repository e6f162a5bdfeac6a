// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include <hpcai/meters/counter_log.hpp>
#include <hpcai/meters/repeater.hpp>
#include <hpcai/meters/utc.hpp>

namespace hpcai::meters {

/// Reads counters from its construction on, in a thread of its own.
class Sampler {
public:
    /// The first reading is done when this returns; others follow every `seconds_between`.
    Sampler(CounterLog log, double seconds_between);
    Sampler(const Sampler&) = delete;
    Sampler& operator=(const Sampler&) = delete;

    /// Reads for the last time; returns what was read. To be called once.
    std::vector<CounterRecord> finish();

private:
    UtcClock clock_;
    CounterLog log_;
    std::optional<Repeater> repeater_;  // ends before what it reads into
};

}  // namespace hpcai::meters
