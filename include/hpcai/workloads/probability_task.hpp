// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <hpcai/records/run_record.hpp>
#include <hpcai/storage/npy.hpp>
#include <hpcai/tensor/shape.hpp>
#include <hpcai/workloads/probabilities.hpp>
#include <hpcai/workloads/workload.hpp>

namespace hpcai::workloads {

inline const PredictionFiles kProbabilityFiles{"predictions.npy", "ensemble.npy", "labels.npy"};

/// A task whose predictions are rows of probabilities.
struct ProbabilityTask {
    std::int64_t cells = 0;    // of a sample, by rows; 0: a sample is one row of probabilities
    std::int64_t classes = 0;  // the background of cells among them
    std::function<void(const Probabilities&, GroupResult&)> judge_member;
    std::function<void(const VotedProbabilities&, QualityRecord&)> judge_vote;

    std::int64_t rows_per_sample() const { return cells == 0 ? 1 : cells; }
    /// (samples x rows_per_sample)
    tensor::Shape label_shape(std::int64_t samples) const { return {samples * rows_per_sample()}; }
    /// (samples x rows_per_sample, classes)
    tensor::Shape shape(std::int64_t samples) const {
        return {samples * rows_per_sample(), classes};
    }
};

/// Labels and probabilities of two compared ensembles, as they are stored.
struct ComparedProbabilities {
    storage::NpyArray labels;
    storage::NpyArray first;
    storage::NpyArray second;
};

inline ComparedProbabilities read_probabilities(const ComparedResults& results) {
    return {storage::read_npy(results.file_of_first(kProbabilityFiles.labels)),
            storage::read_npy(results.file_of_first(kProbabilityFiles.ensemble)),
            storage::read_npy(results.file_of_second(kProbabilityFiles.ensemble))};
}

}  // namespace hpcai::workloads
