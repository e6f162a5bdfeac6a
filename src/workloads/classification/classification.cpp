// SPDX-License-Identifier: Apache-2.0
#include <hpcai/evaluation/ensemble.hpp>
#include <hpcai/workloads/intervals.hpp>
#include <hpcai/workloads/probability_check.hpp>
#include <hpcai/workloads/probability_evaluator.hpp>
#include <hpcai/workloads/tasks.hpp>

#include "judge_classes.hpp"

namespace hpcai::workloads {
namespace {

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
            metric.out_of_bag = nothing(
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
            or_reason(evaluation::accuracy(found.counts.correct_1, found.counts.samples),
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
