// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

#include <hpcai/context/run_context.hpp>
#include <hpcai/training/predict.hpp>

/// Parts of a finished run that another machine computes again.
namespace hpcai::group {

/// Returns the predictions of the test samples by the model in the file `weights`. One rank
/// predicts them. Throws as training::read_weights and data::EvaluationSource.
training::Predictions predict_test_samples(const context::RunContext& context,
                                           const context::Resources& resources,
                                           const std::filesystem::path& weights);

}  // namespace hpcai::group
