// SPDX-License-Identifier: Apache-2.0
#include "hpcai/comm/statistics_span.hpp"

#include "hpcai/base/clock.hpp"

namespace hpcai::comm {

StatisticsSpan::StatisticsSpan(int ranks) : ranks_(ranks) {
    ensure(ranks >= 1, "statistics of {} ranks", ranks);
}

void StatisticsSpan::connect(Communicator& group) {
    ensure(group.size() % ranks_ == 0, "statistics of {} of {} ranks", ranks_, group.size());
    group_ = &group;
    if (ranks_ > 1) span_ = group.split(group.rank() / ranks_, group.rank());
}

void StatisticsSpan::sum(std::span<double> values) {
    ensure(span_ != nullptr, "a sum of statistics of ranks that are not connected");
    const Stopwatch watch;
    const std::unique_ptr<Request> request = span_->start_all_reduce_sum(values);
    try {
        // Failures are announced to the whole group.
        group_->wait_until([&] { return request->test(); });
    } catch (const Error& error) {
        span_->announce_failure(error);  // or the request would wait for those that have left
        throw;
    }
    ++accounting_.sums;
    accounting_.bytes += static_cast<std::int64_t>(values.size_bytes());
    accounting_.seconds += watch.seconds();
}

}  // namespace hpcai::comm
