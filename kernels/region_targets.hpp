// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include <hpcai/ops/box_math.hpp>

#include "anchor_grid.hpp"
#include "stream.hpp"

namespace hpcai::kernels {

/// The one of `boxes` (count, 5) that has the highest IoU with a region; in a tie, the first.
struct BestBox {
    int index = -1;  // -1: no box overlaps the region
    float iou = 0;
};
HPCAI_HOST_DEVICE inline BestBox best_box(const float* boxes, int count, const ops::Box& region) {
    BestBox best;
    for (int i = 0; i < count; ++i) {
        if (!ops::is_box(boxes + i * 5)) continue;
        const float iou = ops::iou_of(ops::box_of(boxes + i * 5), region);
        if (iou > best.iou) best = {i, iou};
    }
    return best;
}

/// The sizes and settings of ops::AnchorTargets.
struct AnchorTargetsShape {
    AnchorGrid grid;
    int images = 0;        // N, 1 to 65535
    int boxes = 0;         // G, at least 1
    int samples = 0;       // S, 1 to 4096
    int max_positive = 0;  // of the samples, at most S
    float foreground_iou = 0;
    float background_iou = 0;
};

std::size_t anchor_targets_workspace_bytes(const AnchorTargetsShape& shape);

struct AnchorTargetsArguments {
    const float* boxes = nullptr;        // (N, G, 5)
    const std::int32_t* keys = nullptr;  // (N), random key of each image
    float* targets = nullptr;            // (N, S, 6)
    void* workspace = nullptr;           // at a multiple of 256 bytes
};
/// Writes the targets of all images; see ops::AnchorTargets. Throws Error(internal) for sizes
/// beyond the limits of AnchorTargetsShape.
void anchor_targets(const AnchorTargetsShape& shape, const AnchorTargetsArguments& arguments,
                    Stream stream);

/// The sizes and settings of ops::RoiTargets.
struct RoiTargetsShape {
    int images = 0;          // N, at least 1
    int proposals = 0;       // R
    int boxes = 0;           // G
    int samples = 0;         // S, 1 to 4096
    int max_foreground = 0;  // of the samples, at most S
    float foreground_iou = 0;
    ops::BoxCoder coder;
};

std::size_t roi_targets_workspace_bytes(const RoiTargetsShape& shape);

struct RoiTargetsArguments {
    const float* proposals = nullptr;    // (N, R, 5)
    const float* boxes = nullptr;        // (N, G, 5)
    const std::int32_t* keys = nullptr;  // (N), random key of each image
    float* targets = nullptr;            // (N, S, 9)
    void* workspace = nullptr;           // at a multiple of 256 bytes
};
/// Writes the regions and targets of all images; see ops::RoiTargets. Throws Error(internal) for
/// sizes beyond the limits of RoiTargetsShape.
void roi_targets(const RoiTargetsShape& shape, const RoiTargetsArguments& arguments, Stream stream);

}  // namespace hpcai::kernels
