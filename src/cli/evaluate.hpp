// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

/// What `evaluate` does with each kind of prediction.
namespace hpcai::cli {

struct EvaluateOptions {
    std::string annotations;
    std::vector<std::string> detections;
    std::vector<double> weights;
    std::string labels;
    std::vector<std::string> predictions;
    std::string aggregation;  // of several files; empty: not given
    std::optional<double> overlap;
    std::optional<double> lowest_score;
    std::int64_t cells = 0;  // of a sample of a segmentation; 0: rows are samples
    bool json = false;
};

/// One finding for people and for programs, each as the command prints it.
struct EvaluationReport {
    std::string text;
    std::string json;
};

/// Four digits, or "none"; the number, or null.
std::string number_text(const std::optional<double>& number);
nlohmann::ordered_json number_json(const std::optional<double>& number);

/// Average precision of `detections`, of several also that of their fusion. Throws Error(data) for
/// files that cannot be used, Error(usage) for an aggregation or weights that do not fit.
EvaluationReport evaluate_detections(const EvaluateOptions& options);

/// Top-1 and Top-5 of `predictions`, of several also those of their vote. Throws likewise.
EvaluationReport evaluate_classification(const EvaluateOptions& options);

/// Mean intersection over union of `predictions` whose rows are cells, of several also that of
/// their vote. Throws likewise.
EvaluationReport evaluate_segmentation(const EvaluateOptions& options);

}  // namespace hpcai::cli
