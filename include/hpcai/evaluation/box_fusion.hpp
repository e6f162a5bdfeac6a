// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <hpcai/evaluation/detection.hpp>

/// Fusion of several models' detections of an image into one list.
namespace hpcai::evaluation {

enum class FusionMethod {
    /// Weighted boxes fusion (R. Solovyev, W. Wang, T. Gabruseva, Image and Vision Computing 107
    /// (2021) 104117). Boxes are processed by descending weight * score. A box joins the cluster of
    /// its category whose fused box has the highest IoU with it, if above `overlap`; otherwise
    /// it starts a cluster. A fused box is the mean of the cluster's boxes, weighted by weight *
    /// score. Its score is the mean of weight * score, times min(models, boxes) / sum of weights: a
    /// model without a box in the cluster counts as a score of 0.
    weighted_fusion,
    /// Non-maximum suppression over the boxes of all models, best first. A box is kept unless its
    /// IoU with a kept box of its category is above `overlap`. Weights have no effect.
    suppression,
};

/// The default `overlap` of each method.
inline constexpr double kFusionOverlap = 0.55;
inline constexpr double kSuppressionOverlap = 0.5;

struct FusionOptions {
    FusionMethod method = FusionMethod::weighted_fusion;
    double overlap = kFusionOverlap;  // intersection over union (IoU)
    double min_score = 0.01;          // detections below it are ignored
    std::int64_t limit = 100;         // maximum number of detections per image
};

struct MemberDetection {
    std::int32_t member = 0;  // index of the model in the ensemble
    Detection detection;
};

/// Returns the fused detections of one image by descending score, equal scores by category.
/// `pooled` has the detections of member 0, then 1 ..., each in the member's order. This order also
/// ranks equal scores. Ignores invalid detections (is_valid) and those with an area or score of
/// 0 or less. `weights` has a positive weight for each model, also for models without detections.
std::vector<Detection> fuse_image(std::span<const MemberDetection> pooled,
                                  std::span<const double> weights, const FusionOptions& options);

}  // namespace hpcai::evaluation
