// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include <hpcai/tensor/shape.hpp>

/// Semantic segmentation on a grid: an image's cells are squares of pixels, each of one class.
namespace hpcai::ops {

using tensor::Shape;

/// Loss of the logits x (N, H, W, K) of the cells of images whose objects are boxes (N, G, 5):
/// of an image the mean over its cells of their cross-entropy, that of cells of class 0 times
/// `background_weight`. A cell's class is that of the smallest box that covers its centre (see
/// cell_class). Output: the softmax (N, H W, K) in fp32, cells by rows.
struct CellCrossEntropy {
    Shape input;              // of x
    Shape boxes;              // x1, y1, x2, y2 in pixels, class; class 0 where there is none
    std::int64_t stride = 8;  // pixels a side of a cell
    double background_weight = 1;
};

}  // namespace hpcai::ops
