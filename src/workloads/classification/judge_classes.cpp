// SPDX-License-Identifier: Apache-2.0
#include "judge_classes.hpp"

#include <hpcai/evaluation/top_k.hpp>
#include <hpcai/workloads/intervals.hpp>
#include <hpcai/workloads/probability_task.hpp>

namespace hpcai::workloads {
namespace {

using evaluation::Judgement;

Quantity share(std::int64_t correct, std::int64_t samples) {
    return or_reason(evaluation::accuracy(correct, samples), "no sample was scored");
}

evaluation::TopK count_hits(const Probabilities& predicted) {
    return evaluation::top_k(predicted.values, predicted.labels, predicted.classes);
}

}  // namespace

void judge_classes(const Probabilities& predicted, GroupResult& result) {
    const evaluation::TopK counts = count_hits(predicted);
    result.quality = share(counts.correct_1, counts.samples);
    result.quality_top_5 = share(counts.correct_5, counts.samples);
}

void judge_class_vote(const VotedProbabilities& predicted, QualityRecord& quality) {
    const evaluation::TopK by_majority = count_hits(predicted.majority);
    const evaluation::TopK counts =
        predicted.majority_counts ? by_majority : count_hits(predicted.soft);
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

QualityComparison compare_classes(const ComparedResults& results) {
    const ComparedProbabilities all =
        read_probabilities(results, results.config.workload.classes, 1);
    const Probabilities one = all.first_probabilities(), other = all.second_probabilities();
    const auto classes = static_cast<std::size_t>(one.classes);
    std::int64_t only_first = 0, only_second = 0;
    for (std::size_t sample = 0; sample < one.labels.size(); ++sample) {
        const std::int32_t label = one.labels[sample];
        if (label == evaluation::kPaddingLabel) continue;
        const auto is_right = [&](const Probabilities& predicted) {
            return evaluation::predicted_class(
                       predicted.values.subspan(sample * classes, classes)) == label;
        };
        const bool right_1 = is_right(one), right_2 = is_right(other);
        only_first += right_1 && !right_2;
        only_second += right_2 && !right_1;
    }
    const double p = evaluation::mcnemar_p(only_first, only_second);
    const std::string why =
        fmt::format("McNemar: {} samples only the first has right, {} only the second, p = {:.3g}",
                    only_first, only_second, p);
    if (only_first + only_second == 0) return {Judgement::same, why};
    if (p >= 0.05) return {Judgement::unclear, why};
    return {only_second > only_first ? Judgement::better : Judgement::worse, why};
}

}  // namespace hpcai::workloads
