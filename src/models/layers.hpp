// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include <hpcai/config/config.hpp>
#include <hpcai/graph/graph.hpp>
#include <hpcai/tensor/dtype.hpp>

namespace hpcai::models {

/// The input images of a model on the device.
struct ImageInput {
    tensor::DType dtype = tensor::DType::u8;  // not u8: the data set has normalized the images
    std::vector<double> mean = {0.485, 0.456, 0.406};  // [channel] of pixels / 255
    std::vector<double> standard_deviation = {0.229, 0.224, 0.225};
};

using Norm = config::Normalization;

struct NormOptions {
    Norm kind = Norm::batch;
    double momentum = 0.1;                // of the running statistics
    std::int64_t statistics_samples = 0;  // samples per set of statistics; 0: the whole batch
};

/// ResNet-50 of He et al. 2016 (arXiv 1512.03385, table 1) without its head. Smaller widths are for
/// small data sets and tests.
struct Backbone {
    std::int64_t width = 64;                   // of the stem and the first stage
    std::array<int, 4> blocks = {3, 4, 6, 3};  // [stage]
    bool stride_on_3x3 = true;                 // v1.5; false: v1, stride on the first 1x1
    bool zero_gamma = true;  // scale of each block's last norm starts at zero (Goyal et al.)
    NormOptions norm;
    int trained_stages = 5;  // from the last; 5: also the stem; fewer require frozen norms
};

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

    /// Adds the images of the batch and a node that normalizes pixels (u8) or converts other types.
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
