// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <fmt/core.h>

#include <hpcai/verification/derive.hpp>

namespace hpcai::verification {
namespace {

/// Seconds until the group's model had the target first.
Quantity time_of(const GroupRecord& group, double target) {
    const auto reached =
        std::ranges::find_if(group.quality_by_epoch,
                             [&](const EpochQualityRecord& one) { return one.quality >= target; });
    if (reached == group.quality_by_epoch.end()) {
        return nothing(fmt::format("the model of group {} did not reach the target", group.group));
    }
    return {reached->training_seconds, ""};
}

}  // namespace

void derive_time_to_quality(const config::Config& config, RunRecord& record) {
    Quantity& time = record.time.time_to_quality_seconds;
    time =
        nothing(config.run.evaluate_epochs == 0 ? "run.evaluate_epochs is 0" : "no group finished");
    if (config.run.evaluate_epochs == 0) return;
    for (const GroupRecord& group : record.work.groups) {
        if (!group.failure.empty()) continue;
        const Quantity mine = time_of(group, record.quality.target);
        if (!mine.value) {
            time = mine;
            return;
        }
        time = {std::max(time.value.value_or(0), *mine.value), ""};
    }
}

void derive_learning_curve(const config::Config& config, const std::vector<StepRecord>& steps,
                           GroupResult& result) {
    const std::vector<EpochQualityRecord> stored = std::move(result.record.quality_by_epoch);
    std::vector<EpochQualityRecord>& curve = result.record.quality_by_epoch;
    curve.clear();
    const int every = config.run.evaluate_epochs;
    const int last = config.workload.epochs;
    if (every == 0 || !result.quality.value) return;
    for (int epoch = every; epoch < last; epoch += every) {
        const auto end = std::ranges::upper_bound(steps, epoch - 1, {}, &StepRecord::epoch);
        const double seconds = end == steps.begin() ? 0 : std::prev(end)->end_seconds;
        const std::size_t index = curve.size();
        curve.push_back({epoch, seconds, index < stored.size() ? stored[index].quality : 0});
    }
    curve.push_back(
        {last, result.record.training_seconds.value.value_or(0), *result.quality.value});
}

}  // namespace hpcai::verification
