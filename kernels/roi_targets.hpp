// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include <hpcai/ops/boxes.hpp>

#include "stream.hpp"

namespace hpcai::kernels {

/// ops::RoiTargets.
struct RoiTargetsShape {
    int images = 0;          // N, at least 1
    int proposals = 0;       // R
    int boxes = 0;           // G
    int samples = 0;         // S, 1 to 4096
    int max_foreground = 0;  // of the samples, at most S
    float foreground_iou = 0;
    ops::BoxCoder coder;
};

/// Bytes of the workspace of roi_targets().
std::size_t roi_targets_workspace_bytes(const RoiTargetsShape& shape);

struct RoiTargetsArguments {
    const float* proposals = nullptr;    // (N, R, 5)
    const float* boxes = nullptr;        // (N, G, 5)
    const std::int32_t* keys = nullptr;  // (N)
    float* targets = nullptr;            // (N, S, 9)
    void* workspace = nullptr;           // at a multiple of 256 bytes
};
/// Writes the regions and targets of all images; see ops::RoiTargets. Throws Error(internal) for
/// sizes beyond the limits of RoiTargetsShape.
void roi_targets(const RoiTargetsShape& shape, const RoiTargetsArguments& arguments, Stream stream);

}  // namespace hpcai::kernels
