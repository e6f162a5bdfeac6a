// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <hpcai/graph/network.hpp>
#include <hpcai/records/step_record.hpp>
#include <hpcai/training/phase_clock.hpp>

namespace hpcai::training {

/// Writes down what a rank does in the first so many steps after the third, by the host's clock.
class StepTrace final : public graph::Observer {
public:
    /// The first steps get memory and plans.
    static constexpr std::int64_t kFirstStep = 3;

    StepTrace(std::function<double()> now, std::int64_t steps)
        : now_(std::move(now)), steps_(steps) {}

    bool has(std::int64_t step) const { return step >= kFirstStep && step < kFirstStep + steps_; }
    /// Whether what comes is part of a step to be traced; nothing else is written down.
    void select(bool is_traced) { is_on_ = is_traced; }

    bool is_on() const { return is_on_; }

    void before(const graph::Step&) override { kernel_begin_ = now_(); }
    void after(const graph::Step& step) override;
    /// A phase that has ended.
    void phase(Phase phase, double begin, double end);
    void step(std::int64_t number, double begin, double end);
    void sum(std::size_t bucket, bool is_over);

    const std::vector<TraceEvent>& events() const { return events_; }

private:
    std::function<double()> now_;
    std::int64_t steps_;
    bool is_on_ = false;
    double kernel_begin_ = 0;
    std::map<std::size_t, double> sums_;  // that are under way: when they began
    std::vector<TraceEvent> events_;
};

}  // namespace hpcai::training
