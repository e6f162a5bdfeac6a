// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <hpcai/comm/communicator.hpp>
#include <hpcai/evaluation/box_fusion.hpp>
#include <hpcai/evaluation/member_bootstrap.hpp>
#include <hpcai/evaluation/top_k.hpp>

namespace hpcai::evaluation {

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
/// differ, `images` < 0, `chunk_images`, options.limit or a weight <= 0, no rank has a model, or
/// detections are unordered or have a nonexistent image.
std::vector<Detection> fuse_detections(comm::Communicator& ranks, std::span<const Member> local,
                                       std::int64_t images, const FusionOptions& options,
                                       std::int64_t chunk_images = kFusionChunkImages);

/// Returns why bootstrap_detections would take too long; empty if it would not.
std::string reason_to_skip_draws(const MemberDraws& draws, std::int64_t images);

/// This rank's models, each with weight 1, and the draws from the models of all ranks.
struct DrawnMembers {
    std::span<const Member> local;
    int first = 0;  // index of local.front() among all models
    const MemberDraws& draws;
};

/// 95 % interval of the mean COCO precision at `threshold` by the bootstrap over members and test
/// images, as MemberBootstrap for classifiers. Each draw of members fuses the detections again.
/// Only rank 0 reads the boxes of `truth` and returns the interval, or nothing if no draw has a
/// box. `truth.images` is equal on all ranks. Collective; throws as fuse_detections does.
std::optional<Interval> bootstrap_detections(comm::Communicator& ranks, const DrawnMembers& members,
                                             const DetectionTruth& truth, double threshold,
                                             const FusionOptions& options);

}  // namespace hpcai::evaluation
