// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

/// The evaluations of `evaluate` for each kind of prediction.
namespace hpcai::cli {

struct EvaluateOptions {
    std::string annotations;
    std::vector<std::string> detections;
    std::vector<double> weights;
    std::string labels;
    std::vector<std::string> predictions;
    std::string aggregation;             // how the models are combined; empty: not given
    std::optional<double> overlap;       // IoU above which boxes are merged
    std::optional<double> lowest_score;  // detections below it are ignored
    std::int64_t cells = 0;              // per sample for segmentation; 0: rows are samples
    bool json = false;
};

/// The output of an evaluation as text and as JSON.
struct EvaluationReport {
    std::string text;
    std::string json;
};

/// Returns four decimals or "none".
std::string number_text(const std::optional<double>& number);

/// Average precision of `detections`, and of their fusion if there are several. Throws Error(data)
/// for invalid files, Error(usage) for an unsuitable aggregation or weights.
EvaluationReport evaluate_detections(const EvaluateOptions& options);

/// Top-1 and Top-5 of `predictions` and of their ensemble. Throws as evaluate_detections().
EvaluationReport evaluate_classification(const EvaluateOptions& options);

/// Mean IoU of `predictions` whose rows are cells, and of their ensemble if there are several.
/// Throws as evaluate_detections().
EvaluationReport evaluate_segmentation(const EvaluateOptions& options);

}  // namespace hpcai::cli
