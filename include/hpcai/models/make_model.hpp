// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <hpcai/config/config.hpp>
#include <hpcai/graph/graph.hpp>

namespace hpcai::models {

/// The input batch of a rank's model.
struct ModelInput {
    std::int64_t batch = 1;
    std::int64_t statistics_samples = 0;  // samples per set of BatchNorm statistics; 0: batch
    // The type of the images; absent: f32 for weather fields, else u8. ResNet-50 always reads u8.
    std::optional<tensor::DType> dtype;
};

/// Builds the graph of the configured model for training, without fusion.
graph::Graph make_model(const config::Config& config, const ModelInput& input = {});

/// Builds the graph of the same model for inference. Its parameters and statistics equal those of
/// make_model(), in the same order.
graph::Graph make_inference_model(const config::Config& config, const ModelInput& input = {});

/// Returns the batch size of a rank in evaluation: 32 for classification, else the smaller of 32
/// and `training_rows`, its micro-batch size in training.
int evaluation_rows(const config::Config& config, int training_rows);

/// The square cells whose classes a segmentation model predicts.
struct CellGrid {
    std::int64_t rows = 0;
    std::int64_t columns = 0;
    std::int64_t pixels = 0;  // side of a cell in pixels
};
/// Throws Error(internal) for a model without cells.
CellGrid cell_grid(const config::Config& config);

}  // namespace hpcai::models
