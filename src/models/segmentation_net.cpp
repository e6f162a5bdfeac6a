// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <hpcai/base/error.hpp>

#include "networks.hpp"

namespace hpcai::models {
namespace {

using graph::ValueId;

/// Adds the top-down path from stride 32 to stride 8. Returns its output.
ValueId top_down(Layers& layers, const std::array<ValueId, 4>& stages, std::int64_t channels) {
    const auto lateral = [&](std::size_t stage) {
        return layers.convolution(fmt::format("pyramid.lateral{}", stage + 1), stages[stage],
                                  channels, {});
    };
    ValueId x = lateral(3);
    for (std::size_t stage = 3; stage-- > 1;) {
        const ValueId finer = lateral(stage);
        x = layers.graph().add_node(fmt::format("pyramid.top_down{}", stage + 1),
                                    ops::UpsampleAdd{layers.shape(finer), layers.shape(x)},
                                    {finer, x});
    }
    return x;
}

/// Adds the head, which computes a logit for each class of each cell.
ValueId add_cell_head(Layers& layers, ValueId features, const SegmentationNet& options) {
    ValueId x = layers.convolution("head.conv1", features, options.pyramid_channels, {3, 1});
    x = layers.relu("head.relu1", layers.norm("head.bn1", x, options.backbone.norm));
    x = layers.convolution("head.conv2", x, options.classes, {});
    const auto bias = layers.graph().add_parameter({.name = "head.conv2.bias",
                                                    .shape = {options.classes},
                                                    .kind = graph::ParameterKind::bias});
    return layers.graph().add_node("head.bias", ops::Bias{layers.shape(x)}, {x}, {bias});
}

}  // namespace

graph::Graph make_segmentation_net(const SegmentationNet& options) {
    Layers layers;
    const ValueId images =
        layers.images({options.batch, options.image_height, options.image_width, options.channels},
                      options.input);
    const auto stages = layers.backbone("backbone.", images, options.backbone);
    const ValueId features = top_down(layers, stages, options.pyramid_channels);
    const ValueId logits = add_cell_head(layers, features, options);
    const tensor::Shape& grid = layers.shape(logits);
    ensure(grid[1] == options.cell_rows() && grid[2] == options.cell_columns(),
           "logits of shape {} do not have {} x {} cells", to_string(grid), options.cell_rows(),
           options.cell_columns());
    const ValueId boxes = layers.graph().add_input("boxes", {options.batch, options.max_boxes, 5},
                                                   tensor::DType::f32);
    layers.graph().add_node("loss",
                            ops::CellCrossEntropy{.input = grid,
                                                  .boxes = layers.shape(boxes),
                                                  .stride = SegmentationNet::kCellPixels,
                                                  .background_weight = options.background_weight},
                            {logits, boxes});
    return std::move(layers.graph());
}

}  // namespace hpcai::models
