// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include <hpcai/meters/counter_log.hpp>
#include <hpcai/meters/repeater.hpp>
#include <hpcai/meters/utc.hpp>

namespace hpcai::meters {

/// Reads counters from its construction on. Readings after the first come from a thread of its own,
/// because a driver may never answer.
class Sampler {
public:
    /// The first reading is done when this returns; others follow every `seconds_between`.
    Sampler(CounterLog log, double seconds_between);
    Sampler(const Sampler&) = delete;
    Sampler& operator=(const Sampler&) = delete;

    /// Reads for the last time; returns what was read, or, where that takes longer than
    /// `patience_seconds`, why nothing is known of any counter. To be called once.
    std::vector<CounterRecord> finish(double patience_seconds);

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
