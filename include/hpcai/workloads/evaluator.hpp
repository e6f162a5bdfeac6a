// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <hpcai/comm/communicator.hpp>
#include <hpcai/evaluation/detection.hpp>
#include <hpcai/records/run_record.hpp>
#include <hpcai/training/predict.hpp>
#include <hpcai/workloads/inspector.hpp>

namespace hpcai::workloads {

/// The predictions of one model of the ensemble.
struct MemberPredictions {
    training::Predictions validation;  // for the test samples
    // Detections read from a file; they replace validation.outputs.
    std::optional<std::vector<evaluation::Detection>> detections = {};
    std::vector<std::uint8_t> out_of_bag;      // by training sample; 1: not in the bootstrap sample
    training::Predictions out_of_bag_samples;  // predictions for the samples with 1, in order
};

/// The predictions of the ensemble at rank 0 of the leaders (the first ranks of the groups). At
/// other ranks only `labels` has values. A workload has either probabilities or detections.
struct EnsemblePredictions {
    std::vector<float> probabilities;               // (rows, classes) by bagging.aggregation
    std::vector<std::int32_t> labels;               // (rows) of samples or of their cells
    std::vector<evaluation::Detection> detections;  // of all samples
};

/// Scores, combines, stores and loads the predictions of a task.
class Evaluator {
public:
    virtual ~Evaluator() = default;

    /// Returns the number of values that the network outputs for one sample.
    virtual std::int64_t outputs_per_sample() const = 0;
    /// Computes one model's quality on all test samples.
    virtual void score(const MemberPredictions& member, GroupResult& result) const = 0;
    /// Stores one model's predictions in `directory`; each file is written atomically.
    virtual void store(const training::Predictions& predictions,
                       const std::filesystem::path& directory) const = 0;
    /// Reads the files that store() wrote to `directory` into `member`, whose labels must be set.
    /// Throws Error(data), naming the file, if the file does not match the labels.
    virtual void load(const std::filesystem::path& directory, MemberPredictions& member) const = 0;
    /// Combines the leaders' predictions. Rank 0 returns the ensemble's predictions and sets
    /// `quality`, except for the numbers that summarize the members. Collective among the leaders.
    virtual EnsemblePredictions combine(const MemberPredictions& local, comm::Communicator& leaders,
                                        QualityRecord& quality) const = 0;
    /// Stores the ensemble's predictions and labels, so that they can be scored again.
    virtual void store(const EnsemblePredictions& predictions,
                       const std::filesystem::path& directory) const = 0;
    /// Compares the names and labels in evaluation/ with the test samples; `labels` has one label
    /// per sample. Reports the first difference of each file.
    virtual void check_samples(std::span<const std::int32_t> labels,
                               Inspector& inspector) const = 0;
    /// Returns how `stored` differs from the recomputed `again`; empty if at least 99 % of the rows
    /// or 75 % of the detections differ by at most `tolerance`, because processors round
    /// differently.
    virtual std::string difference(const MemberPredictions& stored, const MemberPredictions& again,
                                   double tolerance) const = 0;
};

}  // namespace hpcai::workloads
