// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include <fmt/core.h>

#include <hpcai/meters/sampler.hpp>

namespace hpcai::meters {

Sampler::Sampler(CounterLog log, double seconds_between)
    : reader_(std::make_shared<Reader>(Reader{{}, std::move(log)})),
      unread_(reader_->log.records()) {
    reader_->take();
    repeater_.emplace(Repeated{.again = [reader = reader_] { reader->take(); },
                               .end = [reader = reader_] { reader->take(); },
                               .seconds_between = seconds_between});
}

std::vector<CounterRecord> Sampler::finish(double patience_seconds) {
    if (repeater_->stop_within(patience_seconds)) return reader_->log.records();
    for (CounterRecord& one : unread_) {
        if (!one.failure.empty()) continue;
        one.failure = fmt::format("it was not read within {} s", patience_seconds);
    }
    return std::move(unread_);
}

}  // namespace hpcai::meters
