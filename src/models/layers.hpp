// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include <hpcai/graph/graph.hpp>

#include "backbone.hpp"

namespace hpcai::models {

/// Owns a graph, appends layers to it and returns their outputs. backbone() uses torchvision's
/// layer names, after a prefix.
class Layers {
public:
    using ValueId = graph::ValueId;

    struct Window {
        std::int64_t kernel = 1;
        std::int64_t stride = 1;
    };

    graph::Graph& graph() { return graph_; }
    const tensor::Shape& shape(ValueId value) const { return graph_.value(value).shape; }

    /// Adds the images of the batch; the network normalizes them if they are pixels.
    ValueId images(const tensor::Shape& shape, const ImageInput& input);
    /// Adds a convolution without bias. Its padding preserves height and width at stride 1.
    ValueId convolution(const std::string& name, ValueId input, std::int64_t filters, Window window,
                        bool is_trained = true);
    ValueId norm(const std::string& name, ValueId input, const NormOptions& options,
                 bool starts_at_zero = false);
    ValueId relu(const std::string& name, ValueId input);
    ValueId max_pool(const std::string& name, ValueId input, const ops::MaxPool& window);

    /// Adds ResNet-50 without its head. Returns the outputs of its stages, with strides 4 to 32.
    std::array<ValueId, 4> backbone(const std::string& prefix, ValueId images,
                                    const Backbone& options);

private:
    ValueId stem(const std::string& prefix, ValueId images, const Backbone& options);
    struct Block {
        std::int64_t width = 0;
        std::int64_t stride = 1;
        bool is_trained = true;
    };
    /// Adds a bottleneck block: 1x1, 3x3, 1x1 with four times the width, plus the shortcut.
    ValueId block(const std::string& name, ValueId input, const Backbone& options,
                  const Block& block);

    graph::Graph graph_;
};

}  // namespace hpcai::models
