// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <hpcai/tensor/shape.hpp>

/// The operations of Faster R-CNN (Ren et al. 2015) on a feature pyramid (Lin et al. 2017), as in
/// torchvision's fasterrcnn_resnet50_fpn. All sizes are fixed: outputs whose number of rows depends
/// on the data are padded with unused rows, which each operation marks. Boxes are x1, y1, x2, y2 in
/// pixels of the image, where x2 and y2 are exclusive. Boxes and losses are fp32.
namespace hpcai::ops {

using tensor::Shape;

/// Reference boxes: on each pyramid level, the `cell_anchors` repeated at (x, y) * stride for every
/// cell (x, y). Anchors are numbered by level, then y, x, and index in `cell_anchors`.
struct Anchors {
    struct Level {
        std::int64_t height = 0;  // cells
        std::int64_t width = 0;
        std::int64_t stride = 0;                         // pixels per side of a cell
        std::vector<std::array<float, 4>> cell_anchors;  // around (0, 0); same number on each level
    };
    std::vector<Level> levels;  // the finest first
    std::int64_t image_height = 0;
    std::int64_t image_width = 0;

    std::int64_t per_cell() const {
        return static_cast<std::int64_t>(levels.front().cell_anchors.size());
    }
    std::int64_t count() const;
};

/// Encodes a box as deltas relative to an anchor or proposal with centre (xa, ya) and sides (wa,
/// ha): weight_xy * (x - xa) / wa, weight_xy * (y - ya) / ha, weight_wh * log(w / wa) and
/// weight_wh * log(h / ha). Girshick 2015 (Fast R-CNN), section 2.3.
struct BoxCoder {
    float weight_xy = 1;
    float weight_wh = 1;
};

/// Samples the anchors for the losses of each image, with their targets. An anchor is positive if
/// its IoU with some box is at least `foreground_iou`, or if it overlaps a box with which no anchor
/// has a higher IoU. Every other anchor is negative if all its IoU are below `background_iou`.
/// The target of an anchor is the box with which it has the highest IoU (in a tie the first). Up to
/// `samples` anchors are sampled: at most samples x positive_share positives, then negatives,
/// always those with the smallest sampling_key of (the image's key, stage 0, anchor). Inputs: boxes
/// (N, G, 5) of x1, y1, x2, y2, class (class 0 or an empty area: no box); keys (N) s32, the random
/// seed of each image. Output (N, samples, 6): anchor number, 1 (positive) or 0, and the targets of
/// its four deltas (zeros for a negative); unused rows have anchor number -1. Positives come first;
/// positives and negatives are each in anchor order.
struct AnchorTargets {
    Shape boxes;
    Anchors anchors;
    std::int64_t samples = 256;
    double positive_share = 0.5;
    double foreground_iou = 0.7;
    double background_iou = 0.3;
};

/// Losses of the region proposal network. Output (N, 2): for each image two sums, both divided by
/// max(1, number of its sampled anchors). The first sum is the binary cross-entropy of all sampled
/// anchors' logits; the second is the smooth L1 distance (beta 1/9) of the positive anchors' deltas
/// from their targets. Inputs: logits (N, H, W, A) of all levels, deltas (N, H, W, 4 * A) of all
/// levels, then the output of AnchorTargets.
struct RpnLoss {
    std::int64_t batch = 0;  // N
    Anchors anchors;
    Shape targets;  // of the output of AnchorTargets
};

/// The boxes that the region proposal network proposes. On each level, the `per_level` anchors with
/// the highest logits (in a tie the lower anchor number) are decoded from their deltas (BoxCoder
/// with weights 1; both logarithms at most kMaxLogRatio) and clipped to the image. Boxes with a
/// side below `minimum_side` are removed, as are boxes whose IoU with a better remaining box of the
/// level is above `nms_iou`. The `limit` best boxes of all levels remain. Inputs: as for RpnLoss
/// without targets. Output (N, limit, 5): x1, y1, x2, y2, score = sigmoid(logit), by descending
/// score; unused rows are zeros with score -1. Non-finite boxes and NaN logits are removed.
struct Proposals {
    std::int64_t batch = 0;  // N
    Anchors anchors;
    std::int64_t per_level = 2000;
    std::int64_t limit = 2000;
    double nms_iou = 0.7;
    double minimum_side = 1e-3;  // pixels
};

/// Samples the regions that train the second stage. The candidates are the proposals, followed by
/// the boxes of the image. A candidate takes the class of the box with which it has the highest IoU
/// (in a tie the first). If that IoU is below `foreground_iou`, the candidate is background. Up to
/// `samples` candidates are sampled: at most samples x positive_share of foreground, then
/// background, always those with the smallest sampling_key of (the image's key, stage 1,
/// candidate). Unused rows have candidate numbers but are not sampled. Inputs: proposals (N, R, 5),
/// boxes (N, G, 5), keys (N) s32 as for AnchorTargets. Output (N, samples, 9): x1, y1, x2, y2,
/// class (0: background, -1: unused row), targets of the four deltas by `coder` (zeros for
/// background). Foreground comes first; each of the two is in ascending candidate order.
struct RoiTargets {
    Shape proposals;
    Shape boxes;
    std::int64_t samples = 512;
    double positive_share = 0.25;
    double foreground_iou = 0.5;
    BoxCoder coder{10, 5};
};

/// The features of regions: He et al. 2017 (Mask R-CNN), section 3, without the half-pixel shift of
/// later work (torchvision's aligned=False). The level of the pyramid P2 to P5 is clamp(floor(4 +
/// log2(sqrt(area) / 224) + 1e-6), 2, 5). A region, with sides raised to at least one pixel of its
/// level, is divided into pooled x pooled bins. The value of a bin is the mean of sampling_ratio^2
/// bilinear samples, where samples more than one pixel outside the level are 0. Inputs: the levels
/// (N, H, W, C), P2 first, then regions (N, R, 5 or more) of x1, y1, x2, y2 and a number that is
/// negative in unused rows. Output (N * R, pooled * pooled * C), in the order bin row, bin column,
/// channel; zeros for unused rows.
struct RoiAlign {
    std::vector<Shape> pyramid;
    Shape regions;
    std::int64_t pooled = 7;
    std::int64_t sampling_ratio = 2;
};

/// Losses of the second stage. Output (N, 2): for each image two sums, both divided by max(1,
/// number of its used regions). The first sum is the cross-entropy of all used regions' logits. The
/// second is the smooth L1 distance (beta 1/9) of each foreground region's deltas for its class
/// from their targets. Inputs: logits (N * S, K), deltas (N * S, 4 * K), both fp32, and the output
/// of RoiTargets (N, S, 9).
struct RoiLoss {
    Shape targets;
    std::int64_t classes = 0;  // K, including background
};

/// The output of the detector. For each class except background, boxes are decoded from the
/// proposals and their deltas and clipped, and scores are the softmax of the logits. Boxes with a
/// score above `score_threshold` and no side below `minimum_side` are kept unless their IoU with a
/// better kept box of the class is above `nms_iou`; then the `limit` best boxes of all classes
/// remain. Boxes that are not finite are removed. Inputs: logits (N * R, K), deltas (N * R, 4 * K),
/// both fp32, and proposals (N, R, 5). Output (N, limit, 6): x1, y1, x2, y2, score, class, by
/// descending score (in a tie the lower class, then the earlier proposal); unused rows are 0.
struct Detections {
    Shape proposals;
    std::int64_t classes = 0;  // K, including background
    std::int64_t image_height = 0;
    std::int64_t image_width = 0;
    double score_threshold = 0.05;
    double nms_iou = 0.5;
    double minimum_side = 1e-2;  // pixels
    std::int64_t limit = 100;
    BoxCoder coder{10, 5};
};

}  // namespace hpcai::ops
