// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <hpcai/ops/boxes.hpp>

#include "anchor_grid.hpp"
#include "stream.hpp"

namespace hpcai::kernels {

/// ops::Proposals.
struct ProposalsShape {
    AnchorGrid grid;
    int images = 0;     // N, at least 1; N x levels up to 65535
    int per_level = 0;  // best anchors of a level, 1 to 4096
    int limit = 0;      // proposals of an image, 1 to 4096
    float nms_iou = 0;  // ops::rounded_down()
    ops::ImageBounds bounds;
};

/// Bytes of the workspace of proposals().
std::size_t proposals_workspace_bytes(const ProposalsShape& shape);

struct ProposalsArguments {
    RpnOutputs rpn;
    float* proposals = nullptr;  // (N, limit, 5)
    void* workspace = nullptr;   // at a multiple of 256 bytes
};
/// Writes the proposals of all images; see ops::Proposals. Throws Error(internal) for sizes beyond
/// the limits of ProposalsShape.
void proposals(const ProposalsShape& shape, const ProposalsArguments& arguments, Stream stream);

}  // namespace hpcai::kernels
