// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <hpcai/data/sample_set.hpp>
#include <hpcai/workloads/evaluator.hpp>
#include <hpcai/workloads/probabilities.hpp>

namespace hpcai::workloads {

/// Evaluates networks that predict rows of probabilities, by a vote for each sample or cell.
class ProbabilityEvaluator : public Evaluator {
public:
    ProbabilityEvaluator(const config::Config& config, const data::SampleSets& samples,
                         ProbabilityTask task);

    std::int64_t outputs_per_sample() const override;
    void score(const MemberPredictions& member, GroupResult& result) const override;
    void store(const training::Predictions& predictions,
               const std::filesystem::path& directory) const override;
    void load(const std::filesystem::path& directory, MemberPredictions& member) const override;
    EnsemblePredictions combine(const MemberPredictions& member, comm::Communicator& leaders,
                                QualityRecord& quality) const override;
    void store(const EnsemblePredictions& ensemble,
               const std::filesystem::path& directory) const override;
    void check_samples(std::span<const std::int32_t> labels, Inspector& inspector) const override;
    std::string difference(const MemberPredictions& stored, const MemberPredictions& again,
                           double tolerance) const override;

protected:
    /// Returns one label per row of the predictions. `by_sample` has one label per test sample; the
    /// rows of a sample with label -1 are not scored.
    virtual std::vector<std::int32_t> labels_of(std::span<const std::int32_t> by_sample) const = 0;
    /// Adds task-specific values to `quality`. Collective among the leaders.
    virtual void add_quality(const MemberPredictions&, comm::Communicator&, QualityRecord&) const {}

    std::string sample_names() const;  // the text of samples.txt

    const config::Config& config_;
    const data::SampleSets& samples_;
    const ProbabilityTask task_;
};

}  // namespace hpcai::workloads
