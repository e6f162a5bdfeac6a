// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <hpcai/metrics/timing.hpp>

namespace hpcai::metrics {
namespace {

double median(std::vector<double> values) {
    if (values.empty()) return 0;
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    if (values.size() % 2 == 1) return *middle;
    return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

}  // namespace

TimingObserver::TimingObserver(std::function<double()> now) : now_(std::move(now)) {}

void TimingObserver::before(const graph::Step&) {
    started_ = now_();
}

void TimingObserver::after(const graph::Step& step) {
    const double seconds = now_() - started_;
    const auto [found, is_new] = calls_.try_emplace({step.kernel, step.pass});
    if (is_new) {
        found->second.order = calls_.size() - 1;
        found->second.name = step.name;
    }
    found->second.seconds.push_back(seconds);
}

std::vector<OperationTime> TimingObserver::by_node() const {
    std::vector<OperationTime> times(calls_.size());
    for (const auto& [key, call] : calls_) {
        times[call.order] = {call.name, key.second, median(call.seconds)};
    }
    return times;
}

}  // namespace hpcai::metrics
