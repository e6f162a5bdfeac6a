// SPDX-License-Identifier: Apache-2.0
#include <hpcai/base/median.hpp>
#include <hpcai/metrics/timing.hpp>

namespace hpcai::metrics {

void TimingObserver::after(const graph::KernelCall& call) {
    const double seconds = now_() - started_;
    const auto [found, is_new] = calls_.try_emplace({call.kernel, call.pass});
    if (is_new) {
        found->second.order = calls_.size() - 1;
        found->second.name = call.name;
    }
    found->second.seconds.push_back(seconds);
}

std::vector<OperationTime> TimingObserver::times_by_kernel() const {
    std::vector<OperationTime> times(calls_.size());
    for (const auto& [key, call] : calls_) {
        times[call.order] = {call.name, key.second, median(call.seconds)};
    }
    return times;
}

}  // namespace hpcai::metrics
