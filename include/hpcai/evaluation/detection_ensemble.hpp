// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <hpcai/comm/communicator.hpp>
#include <hpcai/evaluation/detection.hpp>
#include <hpcai/evaluation/member_bootstrap.hpp>
#include <hpcai/evaluation/top_k.hpp>

/// Fusion of several models' detections of an image into one list.
namespace hpcai::evaluation {

enum class FusionMethod {
    /// Weighted boxes fusion (R. Solovyev, W. Wang, T. Gabruseva, Image and Vision Computing 107
    /// (2021) 104117). Boxes are processed by descending weight * score. A box joins the cluster of
    /// its category whose fused box has the highest IoU with it, if above `overlap`; otherwise it
    /// starts a cluster. A fused box is the mean of the cluster's boxes, weighted by weight *
    /// score. The score of a cluster of B boxes is the mean of their weight * score, times
    /// min(models, B) / (sum of all weights): a model without a box counts as a score of 0.
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
    bool operator==(const FusionOptions&) const = default;
};

struct MemberDetection {
    std::int32_t member = 0;  // index of the model in the ensemble
    Detection detection;
};

/// Returns the fused detections of one image by descending score, equal scores by category.
/// `pooled` has the detections of member 0, then 1 ..., each in the member's order. Detections of a
/// category with equal scores are fused in this order. Ignores invalid detections (is_valid) and
/// those with an area or score of 0 or less. `weights` has a positive weight for each model, also
/// for models without detections.
std::vector<Detection> fuse_image(std::span<const MemberDetection> pooled,
                                  std::span<const double> weights, const FusionOptions& options);

/// One model's detections of all test images.
struct Member {
    std::span<const Detection> detections;  // by ascending image
    double weight = 1;
};

inline constexpr std::int64_t kFusionChunkImages = 64;  // per rank and round

/// Fuses the detections of all models. Returns the ensemble's detections by ascending image at rank
/// 0, elsewhere an empty list. `local` has the models of this rank, which may be none. The ensemble
/// has the models of all ranks in rank order; the result does not depend on their distribution over
/// ranks. In each round, every rank fuses `chunk_images` images. A rank thus holds only its own
/// detections, those of one round and, at rank 0, the result. Collective: every rank passes the
/// same `images`, `options` and `chunk_images`. Throws Error(internal) on all ranks if these
/// differ, if `images` < 0, if `chunk_images`, options.limit or a weight is <= 0, if no rank has a
/// model, or if detections are unordered or have a nonexistent image.
std::vector<Detection> fuse_detections(comm::Communicator& ranks, std::span<const Member> local,
                                       std::int64_t images, const FusionOptions& options,
                                       std::int64_t chunk_images = kFusionChunkImages);

/// Returns why bootstrap_detections would take too long; empty if it would not.
std::string reason_to_skip_draws(const MemberDraws& draws, std::int64_t images);

/// This rank's models, whose weights are not read, and the draws from the models of all ranks.
struct DrawnMembers {
    std::span<const Member> local;
    int first = 0;  // index of local.front() among all models
    const MemberDraws& draws;
};

/// 95 % interval of the mean COCO precision at `threshold` by the bootstrap over members and test
/// images, as MemberBootstrap does it for classifiers. Each draw of members fuses the detections
/// again. Only rank 0 reads the boxes of `truth` and returns the interval, or nothing if no draw of
/// images has a labelled box. `truth.images` is equal on all ranks. Collective; throws as
/// fuse_detections does.
std::optional<Interval> bootstrap_detections(comm::Communicator& ranks, const DrawnMembers& members,
                                             const DetectionTruth& truth, double threshold,
                                             const FusionOptions& options);

}  // namespace hpcai::evaluation
