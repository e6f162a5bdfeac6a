// SPDX-License-Identifier: Apache-2.0
#include <hpcai/evaluation/ensemble.hpp>
#include <hpcai/group/group_outcome.hpp>

#include "probability_workload.hpp"

namespace hpcai::group {
namespace {

class Classification final : public ProbabilityWorkload {
public:
    using ProbabilityWorkload::ProbabilityWorkload;

private:
    std::vector<std::int32_t> labels_of(std::span<const std::int32_t> samples) const override {
        return {samples.begin(), samples.end()};
    }

    void bootstrap_members(const training::Predictions& mine, comm::Communicator& leaders,
                           QualityRecord& quality) const {
        evaluation::MemberBootstrap bootstrap = verification::member_bootstrap_of(
            config_, leaders.size(), static_cast<std::int64_t>(mine.labels.size()));
        const std::string objection = bootstrap.objection();
        std::optional<evaluation::Interval> interval;
        if (objection.empty()) {
            interval = evaluation::bootstrap_over_members(leaders, mine.outputs, mine.labels,
                                                          std::move(bootstrap));
        }
        quality.members_interval = verification::members_interval_of(objection, interval);
    }

    /// The interval over members, and the out-of-bag vote.
    void add_quality(const GroupOutcome& mine, comm::Communicator& leaders,
                     QualityRecord& quality) const override {
        bootstrap_members(mine.validation, leaders, quality);
        if (!config_.bagging.out_of_bag) return;
        auto& metric = std::get<TopAccuracyRecord>(quality.metric);
        if (mine.out_of_bag.empty()) {
            metric.out_of_bag = nothing(
                "predictions out of the bag are not stored, and only ranks of a run make them");
            return;
        }
        const data::SampleSet& samples = *samples_.training;
        std::vector<std::int32_t> labels;
        for (std::int64_t sample = 0; sample < samples.samples(); ++sample) {
            labels.push_back(samples.label(static_cast<std::uint32_t>(sample)));
        }
        const evaluation::OutOfBagQuality found = evaluation::out_of_bag_vote(
            leaders, {mine.out_of_bag, mine.out_of_bag_samples.outputs, task_.classes}, labels);
        const auto accuracy = evaluation::accuracy(found.counts.correct_1, found.counts.samples);
        metric.out_of_bag =
            accuracy ? Quantity{accuracy, ""} : nothing("no sample was out of any bag");
        metric.out_of_bag_samples = found.covered;
    }
};

}  // namespace

std::unique_ptr<const Workload> make_classification(const config::Config& config,
                                                    const data::SampleSets& samples) {
    return std::make_unique<Classification>(config, samples);
}

}  // namespace hpcai::group
