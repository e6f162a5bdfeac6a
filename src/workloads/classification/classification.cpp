// SPDX-License-Identifier: Apache-2.0
#include <hpcai/evaluation/ensemble.hpp>
#include <hpcai/evaluation/member_bootstrap.hpp>
#include <hpcai/workloads/intervals.hpp>
#include <hpcai/workloads/probability_check.hpp>
#include <hpcai/workloads/probability_evaluator.hpp>
#include <hpcai/workloads/tasks.hpp>

namespace hpcai::workloads {
namespace {

using evaluation::Judgement;

Quantity share(std::int64_t correct, std::int64_t samples) {
    return value_or_reason(evaluation::accuracy(correct, samples), "no sample was scored");
}

evaluation::TopK count_hits(const Probabilities& predicted) {
    return evaluation::top_k(predicted.values, predicted.labels, predicted.classes);
}

/// Computes Top-1 and Top-5 of one member. Throws as evaluation::top_k does.
void judge_classes(const Probabilities& predicted, GroupResult& result) {
    const evaluation::TopK counts = count_hits(predicted);
    result.quality = share(counts.correct_1, counts.samples);
    result.quality_top_5 = share(counts.correct_5, counts.samples);
}

/// Computes the ensemble's quality and its interval, without the out-of-bag quality. Throws as
/// evaluation::top_k does.
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
                          .out_of_bag = no_value("bagging.out_of_bag is false")};
    quality.confidence_interval = interval_record(interval, quality.ensemble.reason, "wilson");
}

/// Makes the bootstrap of `members` members that vote on `samples` test samples.
evaluation::MemberBootstrap member_bootstrap_of(const config::Config& config, int members,
                                                std::int64_t samples) {
    const bool by_majority = config.bagging.aggregation == config::Aggregation::majority;
    return {{members, samples, config.workload.classes, config.run.seed},
            by_majority ? evaluation::Vote::majority : evaluation::Vote::soft};
}

/// Compares two ensembles by McNemar's test.
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

ProbabilityTask classes_of_samples(const config::Config& config) {
    return {0, config.workload.classes, judge_classes, judge_class_vote};
}

class ClassificationEvaluator final : public ProbabilityEvaluator {
public:
    ClassificationEvaluator(const config::Config& config, const data::SampleSets& samples)
        : ProbabilityEvaluator(config, samples, classes_of_samples(config)) {}

private:
    std::vector<std::int32_t> labels_of(std::span<const std::int32_t> samples) const override {
        return {samples.begin(), samples.end()};
    }

    void bootstrap_members(const training::Predictions& mine, comm::Communicator& leaders,
                           QualityRecord& quality) const {
        evaluation::MemberBootstrap bootstrap = member_bootstrap_of(
            config_, leaders.size(), static_cast<std::int64_t>(mine.labels.size()));
        const std::string objection = bootstrap.objection();
        std::optional<evaluation::Interval> interval;
        if (objection.empty()) {
            interval = evaluation::bootstrap_over_members(leaders, mine.outputs, mine.labels,
                                                          std::move(bootstrap));
        }
        quality.members_interval = members_interval_of(objection, interval);
    }

    /// Adds the interval over members and the out-of-bag vote.
    void add_quality(const MemberPredictions& mine, comm::Communicator& leaders,
                     QualityRecord& quality) const override {
        bootstrap_members(mine.validation, leaders, quality);
        if (!config_.bagging.out_of_bag) return;
        if (leaders.rank() != 0)
            quality.metric = TopAccuracyRecord{};  // only that of rank 0 is kept
        auto& metric = std::get<TopAccuracyRecord>(quality.metric);
        if (mine.out_of_bag.empty()) {
            metric.out_of_bag = no_value(
                "out-of-bag predictions are not stored; only the ranks of a run compute them");
            return;
        }
        const data::SampleSet& samples = *samples_.training;
        std::vector<std::int32_t> labels;
        for (std::int64_t sample = 0; sample < samples.samples(); ++sample) {
            labels.push_back(samples.label(static_cast<std::uint32_t>(sample)));
        }
        const evaluation::OutOfBagQuality found = evaluation::out_of_bag_vote(
            leaders, {mine.out_of_bag, mine.out_of_bag_samples.outputs, task_.classes}, labels);
        metric.out_of_bag =
            value_or_reason(evaluation::accuracy(found.counts.correct_1, found.counts.samples),
                            "no sample was out of any bag");
        metric.out_of_bag_samples = found.covered;
    }
};

class ClassificationCheck final : public ProbabilityCheck {
public:
    explicit ClassificationCheck(const CheckedResult& result)
        : ProbabilityCheck(result, classes_of_samples(result.config)) {}

private:
    /// Keeps the stored out-of-bag values, because only a run's ranks can make these predictions.
    void add_quality(std::span<const std::int32_t> labels, const MetricRecord& stored,
                     QualityRecord& quality) override {
        const auto& as_stored = std::get<TopAccuracyRecord>(stored);
        auto& metric = std::get<TopAccuracyRecord>(quality.metric);
        metric.out_of_bag_samples = 0;
        if (result_.config.bagging.out_of_bag) {
            metric.out_of_bag = as_stored.out_of_bag;
            metric.out_of_bag_samples = as_stored.out_of_bag_samples;
        }
        result_.inspector.attempt(labels_name(),
                                  [&] { quality.members_interval = members_interval(labels); });
    }

    /// Reads the members' files again in chunks of samples.
    IntervalRecord members_interval(std::span<const std::int32_t> labels) const {
        auto bootstrap = member_bootstrap_of(
            result_.config, static_cast<int>(member_names().size()), result_.samples);
        const std::string objection = bootstrap.objection();
        if (!objection.empty()) return members_interval_of(objection, std::nullopt);
        const auto rows = static_cast<std::size_t>(bootstrap.chunk_rows());
        for (std::size_t first = 0; first < labels.size(); first += rows) {
            const std::size_t count = std::min(rows, labels.size() - first);
            std::vector<float> chunk;
            for (const std::string& name : member_names()) add_rows(name, first, count, chunk);
            bootstrap.add(chunk, labels.subspan(first, count));
        }
        return members_interval_of("", bootstrap.interval());
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
