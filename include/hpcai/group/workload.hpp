// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <hpcai/comm/communicator.hpp>
#include <hpcai/config/config.hpp>
#include <hpcai/data/sample_set.hpp>
#include <hpcai/evaluation/detection.hpp>
#include <hpcai/group/group_outcome.hpp>
#include <hpcai/records/run_record.hpp>
#include <hpcai/training/predict.hpp>
#include <hpcai/verification/derive.hpp>
#include <hpcai/verification/judge.hpp>

namespace hpcai::group {

/// The predictions of the ensemble, complete at the leaders' rank 0 and empty elsewhere. A workload
/// has either probabilities or detections.
struct EnsemblePredictions {
    std::vector<float> probabilities;               // (rows, classes) by bagging.aggregation
    std::vector<std::int32_t> labels;               // (rows): of samples, or of their cells
    std::vector<evaluation::Detection> detections;  // of all samples
};

/// How a task's predictions are judged, combined and stored.
class Workload {
public:
    virtual ~Workload() = default;

    /// Returns the number of values that the network outputs for one sample.
    virtual std::int64_t outputs_per_sample() const = 0;
    /// Computes one model's quality on all test samples.
    virtual void judge(const training::Predictions& predictions, GroupResult& result) const = 0;
    /// Stores one model's predictions in `directory`, each file whole or not at all.
    virtual void store(const training::Predictions& predictions,
                       const std::filesystem::path& directory) const = 0;
    /// Reads what store() wrote to `directory` into `outcome`, whose sample labels are known.
    /// Throws Error(data) naming a file that does not fit.
    virtual void load(const std::filesystem::path& directory, GroupOutcome& outcome) const = 0;
    /// Combines the leaders' predictions. Rank 0 returns the ensemble's predictions and fills in
    /// `quality`, except for the numbers of the members. Collective among the leaders.
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

using verification::nothing;

}  // namespace hpcai::group
