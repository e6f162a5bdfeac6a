// SPDX-License-Identifier: Apache-2.0
#include "compare_quality.hpp"

#include <hpcai/workloads/workload.hpp>

namespace hpcai::verification {
namespace {

using workloads::QualityComparison;

QualityComparison by_intervals(const IntervalRecord& first, const IntervalRecord& second) {
    const std::string other_samples = "other test samples: by the 95 % intervals, which ";
    if (!first.low.value || !first.high.value || !second.low.value || !second.high.value) {
        return {Judgement::unclear, "one has no interval"};
    }
    if (*second.low.value > *first.high.value) {
        return {Judgement::better, other_samples + "lie apart"};
    }
    if (*second.high.value < *first.low.value) {
        return {Judgement::worse, other_samples + "lie apart"};
    }
    return {Judgement::unclear, other_samples + "overlap"};
}

QualityComparison judge(const StoredResult& first, const StoredResult& second) {
    const QualityRecord& one = first.record.quality;
    const QualityRecord& other = second.record.quality;
    if (!one.ensemble.value || !other.ensemble.value) {
        return {Judgement::unclear, "one has no quality"};
    }
    if (one.metric.index() != other.metric.index())
        return {Judgement::unclear, "the metrics are not the same"};
    if (one.labels_sha256.empty() || one.labels_sha256 != other.labels_sha256) {
        return by_intervals(one.confidence_interval, other.confidence_interval);
    }
    return workloads::workload_of(first.config.workload)
        .compare({first.config, first.directory, second.directory});
}

}  // namespace

MetricComparison compare_quality(const StoredResult& first, const StoredResult& second) {
    const auto [judgement, why] = judge(first, second);
    return {"quality.ensemble",
            metric_name(first.record.quality.metric),
            first.record.quality.ensemble,
            second.record.quality.ensemble,
            judgement,
            why};
}

}  // namespace hpcai::verification
