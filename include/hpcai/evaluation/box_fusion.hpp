// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <hpcai/evaluation/detection.hpp>

/// One list of detections of an image from those of several models.
namespace hpcai::evaluation {

enum class Merging {
    /// Weighted boxes fusion (R. Solovyev, W. Wang, T. Gabruseva, Image and Vision Computing 107
    /// (2021) 104117). In order of weight * score a box joins the cluster of its category whose
    /// fused box it overlaps most, if above `overlap`, or opens one. A fused box is the mean of
    /// its members by weight * score; its score is their mean of that times min(models, boxes) /
    /// sum of weights. So a model without a box in the cluster counts as a score of 0.
    weighted_fusion,
    /// Non-maximum suppression of all models' boxes together: in order of score a box stays unless
    /// it overlaps one of its category that stays, by more than `overlap`. Weights have no effect.
    suppression,
};

/// The usual `overlap` of each.
inline constexpr double kFusionOverlap = 0.55;
inline constexpr double kSuppressionOverlap = 0.5;

struct FusionOptions {
    Merging merging = Merging::weighted_fusion;
    double overlap = kFusionOverlap;
    double lowest_score = 0.01;  // of a detection that takes part
    std::int64_t limit = 100;    // of detections of an image that stay, the best
};

struct MemberDetection {
    std::int32_t member = 0;  // index of its model
    Detection detection;
};

/// The detections of one image, by falling score, equal ones by category. `pooled` come by member,
/// and each member's in its own order; both decide between equal scores. What is not sound, has no
/// area or a score that is 0 or below takes no part. `weights` are above 0, one for each model,
/// those without detections included.
std::vector<Detection> fuse_image(std::span<const MemberDetection> pooled,
                                  std::span<const double> weights, const FusionOptions& options);

}  // namespace hpcai::evaluation
