// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include <hpcai/base/median.hpp>
#include <hpcai/graph/network.hpp>

namespace hpcai::metrics {

/// Time of one kernel in one pass of a training step.
struct OperationTime {
    std::string name;  // of a node or a gradient accumulation
    ops::Pass pass = ops::Pass::forward;
    double median_seconds = 0;  // over the measured training steps
};

/// Measures every kernel call of a network over several training steps; the k-th call of a kernel
/// in a pass belongs to step k. The time ends when the call returns, so on a device that only
/// enqueues work it is the launch time, not the execution time. Each call costs two clock readings.
class TimingObserver final : public graph::Observer {
public:
    /// `now` returns seconds of a monotonic clock.
    explicit TimingObserver(std::function<double()> now) : now_(std::move(now)) {}

    void before(const graph::KernelCall&) override { started_ = now_(); }
    void after(const graph::KernelCall& call) override {
        const double seconds = now_() - started_;
        const auto [found, is_new] = calls_.try_emplace({call.kernel, call.pass});
        if (is_new) {
            found->second.order = calls_.size() - 1;
            found->second.name = call.name;
        }
        found->second.seconds.push_back(seconds);
    }

    /// Discards all times, for example those of warm-up steps.
    void clear() { calls_.clear(); }

    /// Returns one entry per kernel and pass, in the order of first calls; none before any call.
    std::vector<OperationTime> times_by_kernel() const {
        std::vector<OperationTime> times(calls_.size());
        for (const auto& [key, call] : calls_) {
            times[call.order] = {call.name, key.second, median(call.seconds)};
        }
        return times;
    }

private:
    struct Call {
        std::size_t order = 0;
        std::string name;
        std::vector<double> seconds;  // [training step]
    };
    using CallKey = std::pair<const device::Kernel*, ops::Pass>;

    std::function<double()> now_;
    std::map<CallKey, Call> calls_;
    double started_ = 0;
};

}  // namespace hpcai::metrics
