// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <hpcai/training/step_trace.hpp>

namespace hpcai::training {

void StepTrace::after(const graph::Step& step) {
    if (!is_on_) return;
    events_.push_back({TraceLane::kernels, step.name, std::string(ops::name_of(step.pass)),
                       kernel_begin_, now_()});
}

void StepTrace::phase(Phase phase, double begin, double end) {
    if (is_on_) events_.push_back({TraceLane::steps, name_of(phase), "", begin, end});
}

void StepTrace::step(std::int64_t number, double begin, double end) {
    if (!is_on_) return;
    events_.push_back({TraceLane::steps, fmt::format("step {}", number), "", begin, end});
}

void StepTrace::sum(std::size_t bucket, bool is_over) {
    if (!is_on_) return;
    if (!is_over) {
        sums_[bucket] = now_();
    } else if (const auto begun = sums_.extract(bucket)) {
        events_.push_back(
            {TraceLane::sums, fmt::format("bucket {}", bucket), "", begun.mapped(), now_()});
    }
}

}  // namespace hpcai::training
