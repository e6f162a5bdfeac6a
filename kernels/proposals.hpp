// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include <hpcai/ops/box_math.hpp>

#include "anchor_grid.hpp"
#include "stream.hpp"

namespace hpcai::kernels {

/// The sizes and settings of ops::Proposals.
struct ProposalsShape {
    AnchorGrid grid;
    int images = 0;     // N, at least 1; N x levels up to 65535
    int per_level = 0;  // best anchors of a level, 1 to 4096
    int limit = 0;      // proposals of an image, 1 to 4096
    float nms_iou = 0;  // ops::rounded_down() of ops::Proposals::nms_iou
    ops::ImageBounds bounds;
};

std::size_t proposals_workspace_bytes(const ProposalsShape& shape);

struct ProposalsArguments {
    RpnOutputs rpn;
    float* proposals = nullptr;  // (N, limit, 5)
    void* workspace = nullptr;   // at a multiple of 256 bytes
};
/// Writes the proposals of all images; see ops::Proposals. Throws Error(internal) for sizes beyond
/// the limits of ProposalsShape.
void proposals(const ProposalsShape& shape, const ProposalsArguments& arguments, Stream stream);

/// The sizes and settings of ops::Detections.
struct DetectionsShape {
    int images = 0;   // N, at least 1
    int regions = 0;  // R, 1 to 4096
    int classes = 0;  // K, 2 to 4096 with background; N (K - 1) up to 65535
    int limit = 0;    // detections of an image, 1 to 4096
    float score_threshold = 0;
    float nms_iou = 0;  // ops::rounded_down() of ops::Detections::nms_iou
    ops::ImageBounds bounds;
    ops::BoxCoder coder;
};

std::size_t detections_workspace_bytes(const DetectionsShape& shape);

struct DetectionsArguments {
    const float* logits = nullptr;     // (N R, K)
    const float* deltas = nullptr;     // (N R, 4 K)
    const float* proposals = nullptr;  // (N, R, 5)
    float* detections = nullptr;       // (N, limit, 6)
    void* workspace = nullptr;         // at a multiple of 256 bytes
};
/// Writes the detections of all images; see ops::Detections. Throws Error(internal) for sizes
/// beyond the limits of DetectionsShape.
void detections(const DetectionsShape& shape, const DetectionsArguments& arguments, Stream stream);

}  // namespace hpcai::kernels
