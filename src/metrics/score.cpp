// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include <hpcai/metrics/score.hpp>

namespace hpcai::metrics {
namespace {

std::optional<double> finite(double value) {
    return std::isfinite(value) ? std::optional(value) : std::nullopt;
}

std::optional<double> work_per_second(std::span<const GroupWork> groups, double work_per_sample) {
    double samples = 0;
    double longest_seconds = 0;
    bool any_finished = false;
    for (const GroupWork& group : groups) {
        const bool is_legal = group.samples_trained >= 0 && std::isfinite(group.training_seconds) &&
                              group.training_seconds >= 0;
        if (!is_legal) return std::nullopt;
        longest_seconds = std::max(longest_seconds, group.training_seconds);
        if (!group.finished) continue;
        any_finished = true;
        samples += static_cast<double>(group.samples_trained);
    }
    if (!any_finished || longest_seconds <= 0) return std::nullopt;
    return finite(samples * work_per_sample / longest_seconds);
}

}  // namespace

std::optional<double> flops(std::span<const GroupWork> groups,
                            std::int64_t training_flops_per_sample) {
    if (training_flops_per_sample < 0) return std::nullopt;
    return work_per_second(groups, static_cast<double>(training_flops_per_sample));
}

std::optional<double> samples_per_second(std::span<const GroupWork> groups) {
    return work_per_second(groups, 1);
}

std::optional<double> penalty_coefficient(double achieved, double target, double exponent) {
    const bool legal = std::isfinite(achieved) && achieved >= 0 && std::isfinite(target) &&
                       target > 0 && std::isfinite(exponent);
    return legal ? finite(std::pow(achieved / target, exponent)) : std::nullopt;
}

std::optional<double> vflops(std::optional<double> flops,
                             std::optional<double> penalty_coefficient) {
    if (!flops || !penalty_coefficient) return std::nullopt;
    return finite(*flops * *penalty_coefficient);
}

}  // namespace hpcai::metrics
