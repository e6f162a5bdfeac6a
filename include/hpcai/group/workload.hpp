// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <hpcai/base/run_record.hpp>
#include <hpcai/comm/communicator.hpp>
#include <hpcai/config/config.hpp>
#include <hpcai/data/sample_set.hpp>
#include <hpcai/evaluation/detection.hpp>
#include <hpcai/group/group_outcome.hpp>
#include <hpcai/training/predict.hpp>
#include <hpcai/verification/derive.hpp>
#include <hpcai/verification/judge.hpp>

namespace hpcai::group {

/// What the ensemble says; whole at the leaders' rank 0, elsewhere without content. A workload has
/// either probabilities or detections.
struct EnsemblePredictions {
    std::vector<float> probabilities;               // (rows, classes) by bagging.aggregation
    std::vector<std::int32_t> labels;               // (rows): of samples, or of their cells
    std::vector<evaluation::Detection> detections;  // of all samples
};

/// What is the benchmark's business of a task: how predictions are judged, combined and stored.
class Workload {
public:
    virtual ~Workload() = default;

    /// Numbers that the network says of one sample.
    virtual std::int64_t outputs_per_sample() const = 0;
    /// Fills in what one model's predictions of all test samples are worth.
    virtual void judge(const training::Predictions& predictions, GroupResult& result) const = 0;
    /// Stores one model's predictions in `directory`, each file whole or not at all.
    virtual void store(const training::Predictions& predictions,
                       const std::filesystem::path& directory) const = 0;
    /// Gives `outcome`, whose labels of samples are known, what store() has put in `directory`.
    /// Throws Error(data) naming the file where it does not fit.
    virtual void load(const std::filesystem::path& directory, GroupOutcome& outcome) const = 0;
    /// Combines the leaders' predictions. At rank 0 returns the ensemble's and fills in `quality`
    /// but for what the members' results tell. Collective among the leaders.
    virtual EnsemblePredictions combine(const GroupOutcome& mine, comm::Communicator& leaders,
                                        QualityRecord& quality) const = 0;
    /// Stores the ensemble's predictions and what is needed to judge them again.
    virtual void store(const EnsemblePredictions& predictions,
                       const std::filesystem::path& directory) const = 0;
};

/// Makes the configured workload on these samples. Both outlive it.
std::unique_ptr<const Workload> make_workload(const config::Config& config,
                                              const data::SampleSets& samples);
std::unique_ptr<const Workload> make_classification(const config::Config& config,
                                                    const data::SampleSets& samples);
std::unique_ptr<const Workload> make_detection(const config::Config& config,
                                               const data::SampleSets& samples);
std::unique_ptr<const Workload> make_segmentation(const config::Config& config,
                                                  const data::SampleSets& samples);

using verification::no_quality;
using verification::nothing;

}  // namespace hpcai::group
