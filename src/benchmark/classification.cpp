// SPDX-License-Identifier: Apache-2.0
#include <hpcai/evaluation/ensemble.hpp>
#include <hpcai/evaluation/top_k.hpp>
#include <hpcai/storage/file.hpp>
#include <hpcai/storage/npy.hpp>
#include <hpcai/verification/judge.hpp>

#include "group_job.hpp"
#include "workload.hpp"

namespace hpcai::benchmark {
namespace {

class Classification final : public Workload {
public:
    explicit Classification(const Start& start) : start_(start) {}

    std::int64_t outputs_per_sample() const override { return classes(); }

    void judge(const training::Predictions& predictions, GroupResult& result) const override {
        verification::judge_member({predictions.outputs, predictions.labels, classes()}, result);
    }

    void store(const training::Predictions& predictions,
               const std::filesystem::path& directory) const override {
        const auto samples = static_cast<std::int64_t>(predictions.labels.size());
        storage::write_npy(directory / "predictions.npy",
                           std::span<const float>(predictions.outputs), {samples, classes()});
    }

    EnsemblePredictions combine(const GroupOutcome& mine, comm::Communicator& leaders,
                                QualityRecord& quality) const override {
        const std::vector<float>& outputs = mine.validation.outputs;
        std::vector<float> soft = evaluation::ensemble_soft_vote(leaders, outputs, classes());
        std::vector<float> majority = evaluation::ensemble_majority(leaders, outputs, classes());
        EnsemblePredictions said;
        said.labels = mine.validation.labels;
        const bool by_majority = start_.config.bagging.aggregation == config::Aggregation::majority;
        if (leaders.rank() == 0) {
            verification::judge_vote(
                {{soft, said.labels, classes()}, {majority, said.labels, classes()}, by_majority},
                quality);
        }
        bootstrap_members(mine.validation, leaders, quality);
        said.probabilities = by_majority ? std::move(majority) : std::move(soft);
        if (start_.config.bagging.out_of_bag) vote_out_of_bag(mine, leaders, quality);
        return said;
    }

    void store(const EnsemblePredictions& said,
               const std::filesystem::path& directory) const override {
        const auto samples = static_cast<std::int64_t>(said.labels.size());
        storage::write_npy(directory / "ensemble.npy", std::span<const float>(said.probabilities),
                           {samples, classes()});
        storage::write_npy(directory / "labels.npy", std::span<const std::int32_t>(said.labels),
                           {samples});
        std::string names;
        for (std::int64_t sample = 0; sample < samples; ++sample) {
            names += start_.samples.validation->name(static_cast<std::uint32_t>(sample)) + "\n";
        }
        storage::write_file_durably(directory / "samples.txt", names);
    }

private:
    std::int64_t classes() const { return start_.config.workload.classes; }

    void bootstrap_members(const training::Predictions& mine, comm::Communicator& leaders,
                           QualityRecord& quality) const {
        evaluation::MemberBootstrap bootstrap = verification::member_bootstrap_of(
            start_.config, leaders.size(), static_cast<std::int64_t>(mine.labels.size()));
        const std::string objection = bootstrap.objection();
        std::optional<evaluation::Interval> interval;
        if (objection.empty()) {
            interval = evaluation::bootstrap_over_members(leaders, mine.outputs, mine.labels,
                                                          std::move(bootstrap));
        }
        quality.members_interval = verification::members_interval_of(objection, interval);
    }

    void vote_out_of_bag(const GroupOutcome& mine, comm::Communicator& leaders,
                         QualityRecord& quality) const {
        const data::SampleSet& samples = *start_.samples.training;
        std::vector<std::int32_t> labels;
        for (std::int64_t sample = 0; sample < samples.samples(); ++sample) {
            labels.push_back(samples.label(static_cast<std::uint32_t>(sample)));
        }
        const evaluation::OutOfBagQuality found = evaluation::out_of_bag_vote(
            leaders, {mine.out_of_bag, mine.out_of_bag_samples.outputs, classes()}, labels);
        const auto accuracy = evaluation::accuracy(found.counts.correct_1, found.counts.samples);
        quality.out_of_bag =
            accuracy ? Quantity{accuracy, ""} : nothing("no sample was out of any bag");
        quality.out_of_bag_samples = found.covered;
    }

    const Start& start_;
};

}  // namespace

std::unique_ptr<const Workload> make_classification(const Start& start) {
    return std::make_unique<Classification>(start);
}

std::unique_ptr<const Workload> make_workload(const Start& start) {
    return detects(start.config.workload) ? make_detection(start) : make_classification(start);
}

}  // namespace hpcai::benchmark
