// SPDX-License-Identifier: Apache-2.0
#include <hpcai/evaluation/ensemble.hpp>
#include <hpcai/evaluation/member_bootstrap.hpp>
#include <hpcai/workloads/probability_check.hpp>
#include <hpcai/workloads/probability_evaluator.hpp>
#include <hpcai/workloads/tasks.hpp>

namespace hpcai::workloads {
namespace {

using evaluation::Judgement;

Quantity accuracy_or_reason(std::int64_t correct, std::int64_t samples) {
    return value_or_reason(evaluation::accuracy(correct, samples), "no sample was scored");
}

evaluation::TopK count_hits(const Probabilities& predicted) {
    return evaluation::top_k(predicted.values, predicted.labels, predicted.classes);
}

/// Computes Top-1 and Top-5 of one member. Throws as evaluation::top_k does.
void score_classes(const Probabilities& predicted, GroupResult& result) {
    const evaluation::TopK counts = count_hits(predicted);
    result.quality = accuracy_or_reason(counts.correct_1, counts.samples);
    result.quality_top_5 = accuracy_or_reason(counts.correct_5, counts.samples);
}

/// Computes the ensemble's quality and interval, without the out-of-bag quality. Throws as top_k().
void score_class_vote(const VotedProbabilities& predicted, QualityRecord& quality) {
    const evaluation::TopK majority = count_hits(predicted.majority);
    const evaluation::TopK counts = predicted.uses_majority ? majority : count_hits(predicted.soft);
    std::optional<evaluation::Interval> interval;
    if (counts.samples > 0) {
        interval = evaluation::wilson_interval_95(counts.correct_1, counts.samples);
    }
    quality.ensemble = accuracy_or_reason(counts.correct_1, counts.samples);
    quality.metric = TopAccuracyRecord{
        .ensemble_top_5 = accuracy_or_reason(counts.correct_5, counts.samples),
        .ensemble_majority = accuracy_or_reason(majority.correct_1, majority.samples),
        .out_of_bag = no_value("bagging.out_of_bag is false")};
    quality.confidence_interval = interval_record(interval, quality.ensemble.reason, "wilson");
}

evaluation::MemberBootstrap make_member_bootstrap(const config::Config& config, int members,
                                                  std::int64_t samples) {
    const bool by_majority = config.bagging.aggregation == config::Aggregation::majority;
    return {{members, samples, config.workload.classes, config.run.seed},
            by_majority ? evaluation::Vote::majority : evaluation::Vote::soft};
}

QualityComparison compare_classes(const ComparedResults& results) {
    const ComparedProbabilities all =
        read_probabilities(results, results.config.workload.classes, 1);
    const Probabilities first = all.with_labels(all.first), second = all.with_labels(all.second);
    const auto classes = static_cast<std::size_t>(first.classes);
    std::int64_t only_first = 0, only_second = 0;
    for (std::size_t sample = 0; sample < first.labels.size(); ++sample) {
        const std::int32_t label = first.labels[sample];
        if (label == evaluation::kPaddingLabel) continue;
        const auto is_correct = [&](const Probabilities& predicted) {
            return evaluation::predicted_class(
                       predicted.values.subspan(sample * classes, classes)) == label;
        };
        const bool correct_1 = is_correct(first), correct_2 = is_correct(second);
        only_first += correct_1 && !correct_2;
        only_second += correct_2 && !correct_1;
    }
    const double p = evaluation::mcnemar_p(only_first, only_second);
    const std::string why = fmt::format(
        "McNemar: samples that only the first predicts correctly: {}, only the second: {}, p = "
        "{:.3g}",
        only_first, only_second, p);
    if (only_first + only_second == 0) return {Judgement::same, why};
    if (p >= 0.05) return {Judgement::unclear, why};
    return {only_second > only_first ? Judgement::better : Judgement::worse, why};
}

ProbabilityTask classification_task(const config::Config& config) {
    return {0, config.workload.classes, score_classes, score_class_vote};
}

class ClassificationEvaluator final : public ProbabilityEvaluator {
public:
    ClassificationEvaluator(const config::Config& config, const data::SampleSets& samples)
        : ProbabilityEvaluator(config, samples, classification_task(config)) {}

private:
    std::vector<std::int32_t> labels_of(std::span<const std::int32_t> by_sample) const override {
        return {by_sample.begin(), by_sample.end()};
    }

    void bootstrap_members(const training::Predictions& member, comm::Communicator& leaders,
                           QualityRecord& quality) const {
        evaluation::MemberBootstrap bootstrap = make_member_bootstrap(
            config_, leaders.size(), static_cast<std::int64_t>(member.labels.size()));
        const std::string reason = bootstrap.reason_to_skip();
        std::optional<evaluation::Interval> interval;
        if (reason.empty()) {
            interval = evaluation::bootstrap_over_members(leaders, member.outputs, member.labels,
                                                          std::move(bootstrap));
        }
        quality.members_interval = members_interval_record(reason, interval);
    }

    void add_quality(const MemberPredictions& member, comm::Communicator& leaders,
                     QualityRecord& quality) const override {
        bootstrap_members(member.validation, leaders, quality);
        if (!config_.bagging.out_of_bag) return;
        if (leaders.rank() != 0)
            quality.metric = TopAccuracyRecord{};  // discarded: only rank 0's is used
        auto& metric = std::get<TopAccuracyRecord>(quality.metric);
        if (member.out_of_bag.empty()) {
            metric.out_of_bag = no_value(
                "out-of-bag predictions are not stored; only the ranks of a run compute them");
            return;
        }
        const data::SampleSet& samples = *samples_.training;
        std::vector<std::int32_t> labels;
        for (std::int64_t sample = 0; sample < samples.samples(); ++sample) {
            labels.push_back(samples.label(static_cast<std::uint32_t>(sample)));
        }
        const evaluation::OutOfBagQuality vote = evaluation::out_of_bag_vote(
            leaders, {member.out_of_bag, member.out_of_bag_samples.outputs, task_.classes}, labels);
        metric.out_of_bag =
            value_or_reason(evaluation::accuracy(vote.counts.correct_1, vote.counts.samples),
                            "no sample was out of bag for any member");
        metric.out_of_bag_samples = vote.covered;
    }
};

class ClassificationCheck final : public ProbabilityCheck {
public:
    explicit ClassificationCheck(const CheckedResult& result)
        : ProbabilityCheck(result, classification_task(result.config)) {}

private:
    /// Keeps the stored out-of-bag values, because only the ranks of a run can recompute them.
    void add_quality(std::span<const std::int32_t> labels, const MetricRecord& stored,
                     QualityRecord& quality) override {
        const auto& stored_metric = std::get<TopAccuracyRecord>(stored);
        auto& metric = std::get<TopAccuracyRecord>(quality.metric);
        metric.out_of_bag_samples = 0;
        if (result_.config.bagging.out_of_bag) {
            metric.out_of_bag = stored_metric.out_of_bag;
            metric.out_of_bag_samples = stored_metric.out_of_bag_samples;
        }
        result_.inspector.attempt(labels_name(),
                                  [&] { quality.members_interval = members_interval(labels); });
    }

    /// Returns the interval over members. Reads the members' files again, in chunks of samples.
    IntervalRecord members_interval(std::span<const std::int32_t> labels) const {
        auto bootstrap = make_member_bootstrap(
            result_.config, static_cast<int>(member_names().size()), result_.samples);
        const std::string reason = bootstrap.reason_to_skip();
        if (!reason.empty()) return members_interval_record(reason, std::nullopt);
        const auto rows = static_cast<std::size_t>(bootstrap.chunk_rows());
        for (std::size_t first = 0; first < labels.size(); first += rows) {
            const std::size_t count = std::min(rows, labels.size() - first);
            std::vector<float> chunk;
            for (const std::string& name : member_names()) append_rows(name, first, count, chunk);
            bootstrap.add(chunk, labels.subspan(first, count));
        }
        return members_interval_record("", bootstrap.interval());
    }
};

}  // namespace

Workload classification() {
    return {config::Task::classification,
            TopAccuracyRecord{},
            kProbabilityFiles,
            new_evaluator<ClassificationEvaluator>,
            new_check<ClassificationCheck>,
            compare_classes};
}

}  // namespace hpcai::workloads
