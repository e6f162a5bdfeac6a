// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <hpcai/comm/communicator.hpp>
#include <hpcai/evaluation/box_fusion.hpp>

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
/// rounds of `chunk_images` a rank, so that beside its own detections and rank 0's result no rank
/// holds more than a round's. Collective: every rank gives the same `images`, `options` and
/// `chunk_images`. Throws Error(internal) on all ranks when these differ or are not positive, when
/// no rank has a model, or when one's detections are not in order or of images that are not there.
std::vector<Detection> fuse_detections(comm::Communicator& ranks, std::span<const Member> mine,
                                       std::int64_t images, const FusionOptions& options,
                                       std::int64_t chunk_images = kFusionChunkImages);

}  // namespace hpcai::evaluation
