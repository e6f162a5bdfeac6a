// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include <hpcai/config/config.hpp>
#include <hpcai/graph/graph.hpp>

namespace hpcai::models {

/// The input batch of a rank's model.
struct ModelInput {
    std::int64_t batch = 1;
    std::int64_t statistics_samples = 0;  // that share BatchNorm statistics; 0: the whole batch
    // The type of the images; absent: that of the workload. ResNet-50 always takes u8.
    std::optional<tensor::DType> dtype;
};

/// Makes the configured model for training. The graph is not fused.
graph::Graph make_model(const config::Config& config, const ModelInput& input = {});

/// Makes the same model for prediction; its parameters and statistics are those of make_model(), in
/// the same order.
graph::Graph make_inference_model(const config::Config& config, const ModelInput& input = {});

/// Returns the number of samples that a rank predicts at a time: 32 and, except in classification,
/// at most `training_rows`, the number in memory during training.
int evaluation_rows(const config::Config& config, int training_rows);

/// The cells that a segmentation model classifies. For other models cell_grid() throws Error.
struct CellGrid {
    std::int64_t rows = 0;
    std::int64_t columns = 0;
    std::int64_t pixels = 0;  // on a side of a cell
};
CellGrid cell_grid(const config::Config& config);

}  // namespace hpcai::models
