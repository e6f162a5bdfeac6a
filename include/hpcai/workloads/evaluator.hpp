// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

#include <hpcai/comm/communicator.hpp>
#include <hpcai/evaluation/detection.hpp>
#include <hpcai/records/run_record.hpp>
#include <hpcai/training/predict.hpp>

namespace hpcai::workloads {

/// The predictions of one model of the ensemble.
struct MemberPredictions {
    training::Predictions validation;
    // A detector's detections from its file; they replace validation.outputs.
    std::optional<std::vector<evaluation::Detection>> detections = {};
    std::vector<std::uint8_t> out_of_bag;      // [training sample], 1 if not in this bootstrap
    training::Predictions out_of_bag_samples;  // predictions of those samples, in order
};

/// The predictions of the ensemble, complete at the leaders' rank 0 and empty elsewhere. A workload
/// has either probabilities or detections.
struct EnsemblePredictions {
    std::vector<float> probabilities;               // (rows, classes) by bagging.aggregation
    std::vector<std::int32_t> labels;               // (rows): of samples, or of their cells
    std::vector<evaluation::Detection> detections;  // of all samples
};

/// Scores, combines and stores the predictions of a task.
class Evaluator {
public:
    virtual ~Evaluator() = default;

    /// Returns the number of values that the network outputs for one sample.
    virtual std::int64_t outputs_per_sample() const = 0;
    /// Computes one model's quality on all test samples.
    virtual void score(const MemberPredictions& member, GroupResult& result) const = 0;
    /// Stores one model's predictions in `directory`, each file whole or not at all.
    virtual void store(const training::Predictions& predictions,
                       const std::filesystem::path& directory) const = 0;
    /// Reads what store() wrote to `directory` into `member`, which must have the labels of the
    /// samples. Throws Error(data) naming a file that does not fit.
    virtual void load(const std::filesystem::path& directory, MemberPredictions& member) const = 0;
    /// Combines the leaders' predictions. Rank 0 returns the ensemble's predictions and fills in
    /// `quality`, except for the numbers of the members. Collective among the leaders.
    virtual EnsemblePredictions combine(const MemberPredictions& mine, comm::Communicator& leaders,
                                        QualityRecord& quality) const = 0;
    /// Stores the ensemble's predictions and the labels, with which they can be scored again.
    virtual void store(const EnsemblePredictions& predictions,
                       const std::filesystem::path& directory) const = 0;
};

}  // namespace hpcai::workloads
