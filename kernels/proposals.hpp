// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <hpcai/ops/boxes.hpp>

#include "anchor_grid.hpp"
#include "stream.hpp"

namespace hpcai::kernels {

/// ops::Proposals.
struct ProposalsShape {
    AnchorGrid grid;
    int images = 0;     // N
    int per_level = 0;  // up to 4096
    int limit = 0;      // up to 4096
    float nms_iou = 0;  // rounded down
    ops::Bounds bounds;
};

/// Bytes of the workspace of proposals().
std::size_t proposals_workspace_bytes(const ProposalsShape& shape);

struct ProposalsArguments {
    AnchorNumbers numbers;
    float* proposals = nullptr;  // (N, limit, 5)
    void* workspace = nullptr;   // at a multiple of 256 bytes
};
/// Writes the proposals of all images; see ops::Proposals. Throws Error(internal) for sizes beyond
/// these limits.
void proposals(const ProposalsShape& shape, const ProposalsArguments& arguments, Stream stream);

}  // namespace hpcai::kernels
