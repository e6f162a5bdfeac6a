// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <hpcai/evaluation/top_k.hpp>
#include <hpcai/records/run_record.hpp>
#include <hpcai/storage/npy.hpp>
#include <hpcai/tensor/shape.hpp>
#include <hpcai/workloads/workload.hpp>

namespace hpcai::workloads {

/// Softmax outputs of a model or an ensemble; a row is a sample or, in a
/// segmentation, a cell (SegmentationNet) of a sample.
struct Probabilities {
    std::span<const float> values;         // (rows, classes)
    std::span<const std::int32_t> labels;  // (rows); evaluation::kPaddingLabel: not scored
    std::int64_t classes = 0;
};

/// The predictions of an ensemble by both kinds of vote, with the same labels.
struct VotedProbabilities {
    Probabilities soft;
    Probabilities majority;
    bool uses_majority = false;  // by bagging.aggregation; selects aggregated()

    const Probabilities& aggregated() const { return uses_majority ? majority : soft; }
};

/// Computes the mean intersection over union of one member. Throws as evaluation::count_cells().
void score_cells(const Probabilities& predicted, GroupResult& result);

/// Computes the ensemble's quality, its interval and each class's quality. Throws as score_cells().
void score_cell_vote(const VotedProbabilities& predicted, std::int64_t cells_per_sample,
                     const std::vector<std::string>& class_names, QualityRecord& quality);

/// Returns a 95 % interval by the bootstrap over samples: of the mean intersection over union of
/// `predicted` or, unless `other` is null, of the difference `other` - `predicted`. Nothing if no
/// cell is scored.
std::optional<evaluation::Interval> cell_interval_95(const Probabilities& predicted,
                                                     std::int64_t cells_per_sample,
                                                     const Probabilities* other);

inline const PredictionFiles kProbabilityFiles{"predictions.npy", "ensemble.npy", "labels.npy"};

/// A task whose predictions are rows of probabilities.
struct ProbabilityTask {
    std::int64_t cells = 0;    // per sample; 0: the network predicts one row per sample
    std::int64_t classes = 0;  // including background in segmentation
    std::function<void(const Probabilities&, GroupResult&)> score_member;
    std::function<void(const VotedProbabilities&, QualityRecord&)> score_vote;

    std::int64_t rows_per_sample() const { return cells == 0 ? 1 : cells; }
    /// (samples x rows_per_sample)
    tensor::Shape label_shape(std::int64_t samples) const { return {samples * rows_per_sample()}; }
    /// (samples x rows_per_sample, classes)
    tensor::Shape shape(std::int64_t samples) const {
        return {samples * rows_per_sample(), classes};
    }
};

/// Throws Error(data) unless the array has this type and shape. `name` precedes the message.
void require_array(const storage::NpyArray& array, tensor::DType dtype, const tensor::Shape& shape,
                   const std::string& name = "");

/// Stored labels and probabilities of two compared ensembles.
struct ComparedProbabilities {
    storage::NpyArray labels, first, second;

    /// `values` is `first` or `second`.
    Probabilities with_labels(const storage::NpyArray& values) const {
        return {values.as<float>(), labels.as<std::int32_t>(), values.shape()[1]};
    }
};

/// Reads the files of two results. Throws Error(data) unless the labels have `rows_per_sample` rows
/// for each sample and both probabilities are fp32 (rows, classes).
ComparedProbabilities read_probabilities(const ComparedResults& results, std::int64_t classes,
                                         std::int64_t rows_per_sample);

}  // namespace hpcai::workloads
