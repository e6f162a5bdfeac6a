// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "anchor_grid.hpp"
#include "stream.hpp"

namespace hpcai::kernels {

/// ops::AnchorTargets.
struct AnchorTargetsShape {
    AnchorGrid grid;
    int images = 0;        // N, 1 to 65535
    int boxes = 0;         // G, at least 1
    int samples = 0;       // S, 1 to 4096
    int max_positive = 0;  // of the samples, at most S
    float foreground_iou = 0;
    float background_iou = 0;
};

/// Bytes of the workspace of anchor_targets().
std::size_t anchor_targets_workspace_bytes(const AnchorTargetsShape& shape);

struct AnchorTargetsArguments {
    const float* boxes = nullptr;        // (N, G, 5)
    const std::int32_t* keys = nullptr;  // (N)
    float* targets = nullptr;            // (N, S, 6)
    void* workspace = nullptr;           // at a multiple of 256 bytes
};
/// Writes the targets of all images; see ops::AnchorTargets. Throws Error(internal) for sizes
/// beyond the limits of AnchorTargetsShape.
void anchor_targets(const AnchorTargetsShape& shape, const AnchorTargetsArguments& arguments,
                    Stream stream);

}  // namespace hpcai::kernels
