// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <hpcai/comm/communicator.hpp>
#include <hpcai/evaluation/box_fusion.hpp>
#include <hpcai/evaluation/member_draws.hpp>
#include <hpcai/evaluation/top_k.hpp>

namespace hpcai::evaluation {

/// One model's detections of all test images.
struct Member {
    std::span<const Detection> detections;  // by rising image
    double weight = 1;
};

inline constexpr std::int64_t kFusionChunkImages = 64;

/// The ensemble's detections at rank 0, by rising image; elsewhere empty. `mine` are the models of
/// this rank, which may be none; all ranks' models in the order of the ranks are the ensemble, and
/// the result does not depend on which ranks have them. Images are fused on all ranks at once, in
/// rounds of `chunk_images` a rank, so that besides its own detections and rank 0's result no rank
/// holds more than a round's. Collective: every rank gives the same `images`, `options` and
/// `chunk_images`. Throws Error(internal) on all ranks when these differ or are not positive, when
/// no rank has a model, or when one's detections are not in order or of images that are not there.
std::vector<Detection> fuse_detections(comm::Communicator& ranks, std::span<const Member> mine,
                                       std::int64_t images, const FusionOptions& options,
                                       std::int64_t chunk_images = kFusionChunkImages);

/// Why the fusions of bootstrap_detections would take too long; empty where they do not.
std::string objection_to_draws(const MemberDraws& draws, std::int64_t images);

/// This rank's models of weight 1, and the draws of the models of all ranks.
struct DrawnMembers {
    std::span<const Member> mine;
    int first = 0;  // number of the first of `mine` among all
    const MemberDraws& draws;
};

/// How much the mean COCO precision at `threshold` depends on which members and which test images
/// there happened to be: as MemberBootstrap says of classifiers, with the detections fused anew in
/// each draw of members. The interval is rank 0's, where `truth` is read; nothing where no draw
/// has a box. Collective; throws as fuse_detections does.
std::optional<Interval> bootstrap_detections(comm::Communicator& ranks, const DrawnMembers& members,
                                             const DetectionTruth& truth, double threshold,
                                             const FusionOptions& options);

}  // namespace hpcai::evaluation
