// SPDX-License-Identifier: Apache-2.0
#include "judge_classes.hpp"

#include <hpcai/evaluation/top_k.hpp>
#include <hpcai/workloads/intervals.hpp>

namespace hpcai::workloads {
namespace {

Quantity share(std::int64_t correct, std::int64_t samples) {
    return or_reason(evaluation::accuracy(correct, samples), "no sample was scored");
}

evaluation::TopK count_hits(const Probabilities& said) {
    return evaluation::top_k(said.values, said.labels, said.classes);
}

}  // namespace

void judge_classes(const Probabilities& said, GroupResult& result) {
    const evaluation::TopK counts = count_hits(said);
    result.quality = share(counts.correct_1, counts.samples);
    result.quality_top_5 = share(counts.correct_5, counts.samples);
}

void judge_class_vote(const VotedProbabilities& said, QualityRecord& quality) {
    const evaluation::TopK by_majority = count_hits(said.majority);
    const evaluation::TopK counts = said.majority_counts ? by_majority : count_hits(said.soft);
    std::optional<evaluation::Interval> interval;
    if (counts.samples > 0) {
        interval = evaluation::wilson_interval_95(counts.correct_1, counts.samples);
    }
    quality.ensemble = share(counts.correct_1, counts.samples);
    quality.metric =
        TopAccuracyRecord{.ensemble_top_5 = share(counts.correct_5, counts.samples),
                          .ensemble_majority = share(by_majority.correct_1, by_majority.samples),
                          .out_of_bag = nothing("bagging.out_of_bag is false")};
    quality.confidence_interval = interval_record(interval, quality.ensemble.reason, "wilson");
}

evaluation::MemberBootstrap member_bootstrap_of(const config::Config& config, int members,
                                                std::int64_t samples) {
    const bool by_majority = config.bagging.aggregation == config::Aggregation::majority;
    return {{members, samples, config.workload.classes, config.run.seed},
            by_majority ? evaluation::Vote::majority : evaluation::Vote::soft};
}

}  // namespace hpcai::workloads
