// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include <hpcai/config/config.hpp>
#include <hpcai/graph/graph.hpp>

namespace hpcai::models {

/// The samples that a rank's model works on at a time.
struct ModelInput {
    std::int64_t batch = 1;
    std::int64_t statistics_samples = 0;  // that share a normalization's statistics; 0: all
    // Of the images, as the data set has them; absent: the workload's usual one.
    std::optional<tensor::DType> dtype;
};

/// The configured model, to be trained. The graph is not fused.
graph::Graph make_model(const config::Config& config, const ModelInput& input = {});

/// The same model, to predict: its parameters and statistics are the trained one's, in order.
graph::Graph make_inference_model(const config::Config& config, const ModelInput& input = {});

/// Returns how many samples a rank predicts at a time: enough for full speed, and no more than the
/// `training_rows` that it had in memory before, where samples are large.
int evaluation_rows(const config::Config& config, int training_rows);

/// The cells that a segmentation gives classes to.
struct CellGrid {
    std::int64_t rows = 0;
    std::int64_t columns = 0;
    std::int64_t pixels = 0;  // a side of a cell
};
CellGrid cell_grid(const config::Config& config);

}  // namespace hpcai::models
