// SPDX-License-Identifier: Apache-2.0
#include "probability_workload.hpp"

#include <hpcai/evaluation/ensemble.hpp>
#include <hpcai/group/group_outcome.hpp>
#include <hpcai/storage/file.hpp>
#include <hpcai/storage/npy.hpp>

namespace hpcai::group {
namespace {

std::vector<std::string> class_names(const data::SampleSet& samples) {
    std::vector<std::string> names{"background"};
    for (int category = 1; category <= samples.classes(); ++category) {
        names.push_back(samples.class_name(category));
    }
    return names;
}

verification::ProbabilityTask task_of(const config::Config& config,
                                      const data::SampleSets& samples) {
    return verification::probability_task(config, class_names(*samples.validation));
}

}  // namespace

ProbabilityWorkload::ProbabilityWorkload(const config::Config& config,
                                         const data::SampleSets& samples)
    : config_(config), samples_(samples), task_(group::task_of(config, samples)) {}

std::int64_t ProbabilityWorkload::outputs_per_sample() const {
    return task_.rows_per_sample() * task_.classes;
}

void ProbabilityWorkload::judge(const training::Predictions& predictions,
                                GroupResult& result) const {
    const std::vector<std::int32_t> labels = labels_of(predictions.labels);
    task_.judge_member({predictions.outputs, labels, task_.classes}, result);
}

void ProbabilityWorkload::store(const training::Predictions& predictions,
                                const std::filesystem::path& directory) const {
    const auto samples = static_cast<std::int64_t>(predictions.labels.size());
    storage::write_npy(directory / "predictions.npy", std::span<const float>(predictions.outputs),
                       task_.shape(samples));
}

void ProbabilityWorkload::load(const std::filesystem::path& directory,
                               GroupOutcome& outcome) const {
    const auto path = directory / "predictions.npy";
    const storage::NpyArray stored = storage::read_npy(path);
    const tensor::Shape expected = task_.shape(std::ssize(outcome.validation.labels));
    require(stored.dtype() == tensor::DType::f32 && stored.shape() == expected, ExitCode::data,
            "'{}': expected fp32 of shape {}, got {}", path.string(), tensor::to_string(expected),
            tensor::to_string(stored.shape()));
    const auto values = stored.as<float>();
    outcome.validation.outputs.assign(values.begin(), values.end());
}

EnsemblePredictions ProbabilityWorkload::combine(const GroupOutcome& mine,
                                                 comm::Communicator& leaders,
                                                 QualityRecord& quality) const {
    const std::vector<float>& outputs = mine.validation.outputs;
    std::vector<float> soft = evaluation::ensemble_soft_vote(leaders, outputs, task_.classes);
    std::vector<float> majority = evaluation::ensemble_majority(leaders, outputs, task_.classes);
    EnsemblePredictions said;
    said.labels = labels_of(mine.validation.labels);
    const bool by_majority = config_.bagging.aggregation == config::Aggregation::majority;
    if (leaders.rank() == 0) {
        task_.judge_vote({{soft, said.labels, task_.classes},
                          {majority, said.labels, task_.classes},
                          by_majority},
                         quality);
    }
    said.probabilities = by_majority ? std::move(majority) : std::move(soft);
    add_quality(mine, leaders, quality);
    return said;
}

void ProbabilityWorkload::store(const EnsemblePredictions& said,
                                const std::filesystem::path& directory) const {
    const std::int64_t samples = samples_.validation->samples();
    storage::write_npy(directory / "ensemble.npy", std::span<const float>(said.probabilities),
                       task_.shape(samples));
    storage::write_npy(directory / "labels.npy", std::span<const std::int32_t>(said.labels),
                       task_.label_shape(samples));
    std::string names;
    for (std::int64_t sample = 0; sample < samples; ++sample) {
        names += samples_.validation->name(static_cast<std::uint32_t>(sample)) + "\n";
    }
    storage::write_file_durably(directory / "samples.txt", names);
}

}  // namespace hpcai::group
