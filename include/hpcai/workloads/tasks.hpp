// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <fmt/core.h>

#include <hpcai/evaluation/top_k.hpp>
#include <hpcai/records/run_record.hpp>
#include <hpcai/workloads/workload.hpp>

namespace hpcai::workloads {

Workload classification();
Workload detection();
Workload segmentation();

template <typename TaskEvaluator>
std::unique_ptr<const Evaluator> new_evaluator(const config::Config& config,
                                               const data::SampleSets& samples) {
    return std::make_unique<TaskEvaluator>(config, samples);
}

template <typename TaskCheck>
std::unique_ptr<PredictionCheck> new_check(const CheckedResult& result) {
    return std::make_unique<TaskCheck>(result);
}

/// Makes the record of a 95 % interval; both ends have `reason` if there is no interval.
inline IntervalRecord interval_record(const std::optional<evaluation::Interval>& interval,
                                      const std::string& reason, const std::string& method) {
    if (!interval) return {no_value(reason), no_value(reason), 0.95, method};
    return {{interval->low, ""}, {interval->high, ""}, 0.95, method};
}

/// Makes quality.members_interval from a bootstrap, or from the reason for which it was skipped.
inline IntervalRecord members_interval_record(const std::string& skip_reason,
                                              const std::optional<evaluation::Interval>& interval) {
    return interval_record(interval, skip_reason.empty() ? "no sample was scored" : skip_reason,
                           "bootstrap over members and test samples");
}

/// Compares two results by the 95 % interval of their difference (second - first).
inline QualityComparison comparison(const evaluation::Interval& interval, std::int64_t samples) {
    const std::string why =
        fmt::format("difference {:+.4f} to {:+.4f} (95 %, paired bootstrap over {} test samples)",
                    interval.low, interval.high, samples);
    if (interval.low > 0) return {evaluation::Judgement::better, why};
    return {interval.high < 0 ? evaluation::Judgement::worse : evaluation::Judgement::unclear, why};
}

}  // namespace hpcai::workloads
