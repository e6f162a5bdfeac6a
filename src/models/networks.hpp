// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <hpcai/base/rounding.hpp>
#include <hpcai/config/config.hpp>
#include <hpcai/graph/graph.hpp>

namespace hpcai::models {

/// The input images of a model on the device.
struct ImageInput {
    tensor::DType dtype = tensor::DType::u8;  // other than u8: images are normalized before
    std::vector<double> mean = {0.485, 0.456, 0.406};  // [channel] of pixels / 255
    std::vector<double> standard_deviation = {0.229, 0.224, 0.225};
};

using Norm = config::Normalization;

struct NormOptions {
    Norm kind = Norm::batch;
    double momentum = 0.1;                // of the running statistics
    std::int64_t statistics_samples = 0;  // samples per set of statistics; 0: the whole batch
};

/// ResNet-50 (see ResNet50) without its head. Smaller widths are for small data sets and tests.
struct Backbone {
    std::int64_t width = 64;                   // of the stem and the first stage
    std::array<int, 4> blocks = {3, 4, 6, 3};  // [stage]
    bool stride_on_3x3 = true;                 // v1.5; false: v1, stride on the first 1x1
    bool zero_gamma = true;  // a block's last norm starts with scale 0 unless frozen (Goyal et al.)
    NormOptions norm;
    int trained_stages =
        5;  // counted from the last; 5: all and the stem; fewer: norms must be frozen
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

/// ResNet-50 of He et al. 2016 (arXiv 1512.03385, table 1) or its v1.5 variant.
struct ResNet50 {
    std::int64_t batch = 1;  // samples that a rank processes at once
    std::int64_t image_size = 224;
    std::int64_t channels = 3;
    std::int64_t classes = 1000;
    double label_smoothing = 0;
    ImageInput input;
    Backbone backbone;
};

/// Builds the graph from pixels to softmax: inputs "images" (N, H, W, C) uint8 and "labels" (N)
/// int32, output "loss" (N, classes), which has the softmax. Parameters have torchvision's names.
graph::Graph make_resnet50(const ResNet50& options);

/// A fully convolutional network (Long et al. 2015) that classifies each cell of 8 x 8 pixels: a
/// backbone of one residual block in each stage, the top-down path of a feature pyramid (Lin et al.
/// 2017) from stride 32 to stride 8, and a head of two convolutions.
struct SegmentationNet {
    static constexpr std::int64_t kCellPixels = 8;

    std::int64_t batch = 1;  // samples that a rank processes at once
    std::int64_t image_height = 768;
    std::int64_t image_width = 1152;
    std::int64_t channels = 16;
    std::int64_t classes = 5;     // including background, which is class 0
    std::int64_t max_boxes = 15;  // per image
    ImageInput input;
    Backbone backbone{.width = 16, .blocks = {1, 1, 1, 1}, .norm = {}};
    std::int64_t pyramid_channels = 64;
    double background_weight = 1;  // weight of a background cell in the loss

    std::int64_t cell_rows() const { return ceil_div(image_height, kCellPixels); }
    std::int64_t cell_columns() const { return ceil_div(image_width, kCellPixels); }
};

/// Builds the graph from images and boxes to the softmax of the cells: inputs "images" (N, H, W, C)
/// and "boxes" (N, max_boxes, 5) fp32, output "loss" (N, cell_rows * cell_columns, classes).
graph::Graph make_segmentation_net(const SegmentationNet& options);

/// Faster R-CNN (Ren et al. 2015) on ResNet-50 with a feature pyramid (Lin et al. 2017), as in
/// torchvision's fasterrcnn_resnet50_fpn.
struct FasterRcnn {
    std::int64_t batch = 1;  // samples that a rank processes at once
    std::int64_t image_height = 768;
    std::int64_t image_width = 1152;
    std::int64_t channels = 16;
    std::int64_t classes = 5;     // including background, which is class 0
    std::int64_t max_boxes = 15;  // per image
    ImageInput input;
    Backbone backbone;
    config::DetectorConfig detector{};  // `backbone` overrides normalization and trained_stages
    std::int64_t detections = 100;      // per image
};

/// Inputs in addition to the images. A row of "boxes" has x1, y1, x2, y2 in pixels and a class (0:
/// no box).
inline constexpr const char* kBoxesInput = "boxes";  // (N, max_boxes, 5) fp32, training
inline constexpr const char* kKeysInput = "keys";  // (N) int32, training: seeds of random sampling

/// Returns the anchors of the five pyramid levels with strides 4 to 64 pixels. An anchor of size s
/// has the area s * s before its coordinates are rounded, half to even. The strides equal
/// torchvision's if the height and width of the image are multiples of 64.
ops::Anchors make_anchors(const FasterRcnn& options);

/// Returns a graph that computes the losses "rpn_loss" and "roi_loss", (N, 2) each, from images (N,
/// H, W, C), boxes and keys. Parameters have torchvision's names.
graph::Graph make_faster_rcnn(const FasterRcnn& options);

/// Returns a graph that computes detections (N, detections, 6) from images; ops::Detections defines
/// their rows. Parameters and statistics equal those of the training graph, in the same order.
graph::Graph make_faster_rcnn_inference(const FasterRcnn& options);

}  // namespace hpcai::models
