// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include <hpcai/meters/sampler.hpp>

namespace hpcai::meters {

Sampler::Sampler(CounterLog log, double seconds_between) : log_(std::move(log)) {
    log_.take(clock_.seconds());
    repeater_.emplace(Repeated{.again = [this] { log_.take(clock_.seconds()); },
                               .seconds_between = seconds_between});
}

std::vector<CounterRecord> Sampler::finish() {
    repeater_->stop();
    log_.take(clock_.seconds());
    return log_.records();
}

}  // namespace hpcai::meters
