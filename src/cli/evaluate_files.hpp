// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <hpcai/base/text.hpp>
#include <hpcai/evaluation/ballot.hpp>
#include <hpcai/storage/npy.hpp>

#include "evaluate.hpp"

/// Files of labels and probabilities.
namespace hpcai::cli {

struct PredictionFiles {
    std::vector<std::int32_t> labels;
    std::vector<storage::NpyArray> members;  // (labels, classes) f32
    std::int64_t classes = 0;
};

/// Throws Error(data) naming the file for types, shapes and labels that do not fit together.
PredictionFiles read_files(const EvaluateOptions& options);

/// Throws Error(usage) for a name that is none of a vote.
evaluation::Vote vote_of(const EvaluateOptions& options);

/// "one model", "3 models by soft_vote".
std::string voters_of(const EvaluateOptions& options);
/// Null of one model.
nlohmann::ordered_json aggregation_of(const EvaluateOptions& options);

}  // namespace hpcai::cli
