// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include <hpcai/tensor/shape.hpp>

/// The operations of Faster R-CNN (Ren et al. 2015) on a feature pyramid (Lin et al. 2017), as
/// torchvision's fasterrcnn_resnet50_fpn computes them. Their sizes are fixed: what depends on the
/// data is padded, and marked by a negative number in its row. Boxes are x1, y1, x2, y2 in pixels
/// of the image, their ends exclusive. Everything of boxes and losses is fp32.
namespace hpcai::ops {

using tensor::Shape;

/// Reference boxes: those of one cell of each level of a pyramid, repeated at (x, y) * stride.
/// They are numbered by level, y, x, and place in `cell`.
struct Anchors {
    struct Level {
        std::int64_t height = 0;  // cells
        std::int64_t width = 0;
        std::int64_t stride = 0;                 // pixels between cells
        std::vector<std::array<float, 4>> cell;  // around (0, 0); as many on each level
    };
    std::vector<Level> levels;  // the finest first
    std::int64_t image_height = 0;
    std::int64_t image_width = 0;

    std::int64_t per_cell() const { return static_cast<std::int64_t>(levels.front().cell.size()); }
    std::int64_t count() const;
};

/// What a box has to become, in units of an anchor or a proposal with centre (xa, ya) and sides
/// (wa, ha): weight_xy (x - xa) / wa, weight_xy (y - ya) / ha, weight_wh log(w / wa),
/// weight_wh log(h / ha). Girshick 2015 (Fast R-CNN), section 2.3.
struct BoxCoder {
    float weight_xy = 1;
    float weight_wh = 1;
};

/// Which of the anchors each image's step is taken from, and what they should say. An anchor is
/// positive from an IoU of `foreground_iou` with some box on, or where it overlaps a box and no
/// anchor has a higher IoU with that, and negative below `background_iou` with all. Its target is
/// the box with which its own IoU is highest (the first of equals). Of them are drawn `samples`, of
/// which no more than `positive_share` are positive: those with the smallest sampling_key of (the
/// image's key, stage 0, anchor). Inputs: boxes (N, G, 5) of x1, y1, x2, y2, class, class 0 where
/// there is none, and a box without area is none; keys (N) s32. Output (N, samples, 6): anchor
/// number, 1 or 0, and the target of its four deltas (zeros of a negative); -1 for the anchor
/// number of an unused row. Positive rows come first, each part in ascending order of the anchors.
struct AnchorTargets {
    Shape boxes;
    Anchors anchors;
    std::int64_t samples = 256;
    double positive_share = 0.5;
    double foreground_iou = 0.7;
    double background_iou = 0.3;
};

/// Losses of the region proposal network: output (N, 2), of an image the mean over its sampled
/// anchors of the binary cross-entropy of their logits, and the sum over the positive ones of the
/// smooth L1 distance (beta 1/9) of their deltas from the target, divided by the same number.
/// Inputs: for each level logits (N, H, W, A), for each level deltas (N, H, W, 4 A), then the
/// output of AnchorTargets.
struct RpnLoss {
    std::int64_t batch = 0;  // N
    Anchors anchors;
    Shape targets;
};

/// The boxes that the region proposal network proposes. On each level the `per_level` anchors of
/// the highest logits (the lower number of equals) are moved by their deltas (BoxCoder of weights
/// 1, the logarithms at most log(1000 / 16)) and clipped to the image; those with a side under
/// `minimum_side` fall away, and those whose IoU with one of a higher score on the same level is
/// above `nms_iou`; then the `limit` best of all levels remain. Inputs as of RpnLoss without
/// targets. Output (N, limit, 5): x1, y1, x2, y2, score = sigmoid(logit), by falling score; zeros
/// and score -1 in unused rows. A box that is not finite falls away, and one whose logit is no
/// number.
struct Proposals {
    std::int64_t batch = 0;  // N
    Anchors anchors;
    std::int64_t per_level = 2000;
    std::int64_t limit = 2000;
    double nms_iou = 0.7;
    double minimum_side = 1e-3;
};

/// Which regions the second stage is trained on: the proposals and, behind them, the image's boxes
/// are its candidates. A candidate is of the class of the box with which it has the highest IoU
/// (the first of equals), where that is at least `foreground_iou`, else background. Drawn are
/// `samples`, no more than `positive_share` of them foreground, by the smallest sampling_key of
/// (the image's key, stage 1, candidate). Inputs: proposals (N, R, 5), boxes (N, G, 5), keys (N).
/// Output (N, samples, 9): x1, y1, x2, y2, class (0: background, -1: unused row), targets of the
/// four deltas by `coder` (zeros of background). Foreground comes first, each part in ascending
/// order of the candidates.
struct RoiTargets {
    Shape proposals;
    Shape boxes;
    std::int64_t samples = 512;
    double positive_share = 0.25;
    double foreground_iou = 0.5;
    BoxCoder coder{10, 5};
};

/// The features of regions: He et al. 2017 (Mask R-CNN), section 3, without the half pixel that
/// later work adds (torchvision's aligned=False), from the level
/// clamp(floor(4 + log2(sqrt(area) / 224) + 1e-6), 2, 5) of the pyramid P2 to P5. A region, at
/// least one pixel of its level a side, is cut into pooled x pooled bins; a bin's value is the
/// mean of sampling_ratio^2 bilinear samples. Inputs: the levels (N, H, W, C), P2 first, then
/// regions (N, R, 5 or more) of x1, y1, x2, y2 and a number that is negative in unused rows.
/// Output (N R, pooled pooled C), in the order bin row, bin column, channel; zeros for unused rows.
struct RoiAlign {
    std::vector<Shape> pyramid;
    Shape regions;
    std::int64_t pooled = 7;
    std::int64_t sampling_ratio = 2;
};

/// Losses of the second stage: output (N, 2), of an image the mean over its regions of the
/// cross-entropy of their logits, and the sum over those of foreground of the smooth L1 distance
/// (beta 1/9) of their class's deltas from the target, divided by the number of its regions.
/// Inputs: logits (N S, K), deltas (N S, 4 K), both fp32, and the output of RoiTargets (N, S, 9).
struct RoiLoss {
    Shape targets;
    std::int64_t classes = 0;  // K, background among them
};

/// What the detector says: for each class but background the softmax of its logit and the proposal
/// moved by its deltas and clipped; those with a score above `score_threshold` and no side under
/// `minimum_side` are kept unless their IoU with a better one of the class is above `nms_iou`, and
/// of all classes the `limit` best. A box that is not finite falls away. Inputs: logits (N R, K),
/// deltas (N R, 4 K), both fp32, and proposals (N, R, 5). Output (N, limit, 6): x1, y1, x2, y2,
/// score, class, by falling score (of equals the lower class, then the earlier proposal first);
/// zeros in unused rows.
struct Detections {
    Shape proposals;
    std::int64_t classes = 0;  // K, background among them
    std::int64_t image_height = 0;
    std::int64_t image_width = 0;
    double score_threshold = 0.05;
    double nms_iou = 0.5;
    double minimum_side = 1e-2;
    std::int64_t limit = 100;
    BoxCoder coder{10, 5};
};

}  // namespace hpcai::ops
