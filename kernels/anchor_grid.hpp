// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include <hpcai/ops/box_math.hpp>
#include <hpcai/ops/detection.hpp>
#include <hpcai/tensor/dtype.hpp>

namespace hpcai::kernels {

/// ops::Anchors as a kernel argument. Anchors are numbered over all levels; within a level, those
/// of a cell are adjacent, and cells are in row-major order.
struct AnchorGrid {
    static constexpr int kMaxLevels = 6, kMaxInCell = 32;  // limited by 4 KiB of kernel arguments

    struct Level {
        int first = 0;  // the level's first anchor
        int height = 0;
        int width = 0;
        int stride = 0;
        float cell[kMaxInCell][4] = {};  // boxes of the anchors of the cell at (0, 0)
    };
    int levels = 0;
    int per_cell = 0;  // anchors of a cell
    int count = 0;     // anchors of all levels
    Level level[kMaxLevels];

    HPCAI_HOST_DEVICE int count_of(int level_index) const {
        return level[level_index].height * level[level_index].width * per_cell;
    }
    HPCAI_HOST_DEVICE int level_of(int anchor) const {
        int level_index = 0;
        while (level_index + 1 < levels && anchor >= level[level_index + 1].first) ++level_index;
        return level_index;
    }
    HPCAI_HOST_DEVICE ops::Box box(int level_index, int anchor) const {
        const Level& at = level[level_index];
        const int local = anchor - at.first;
        const int cell_index = local / per_cell;
        const auto x = static_cast<float>(cell_index % at.width * at.stride);
        const auto y = static_cast<float>(cell_index / at.width * at.stride);
        const float* base = at.cell[local % per_cell];
        return {base[0] + x, base[1] + y, base[2] + x, base[3] + y};
    }
    HPCAI_HOST_DEVICE ops::Box box(int anchor) const { return box(level_of(anchor), anchor); }
};

/// Throws Error(internal) unless there are 1 to kMaxLevels levels with equally many anchors per
/// cell, 1 to kMaxInCell, and fewer than 2^24 anchors in total.
AnchorGrid make_anchor_grid(const ops::Anchors& anchors);

/// The outputs of a region proposal network: for each level logits (N, H, W, A) and deltas (N, H,
/// W, 4 A) of `dtype`, with A anchors per cell. Strides are elements from cell to cell.
struct RpnOutputs {
    tensor::DType dtype = tensor::DType::f32;
    int logit_stride = 0;
    int delta_stride = 0;
    const void* logits[AnchorGrid::kMaxLevels] = {};
    const void* deltas[AnchorGrid::kMaxLevels] = {};
};

/// The index of an anchor's first element in the logits or deltas of its level (RpnOutputs), which
/// have `elements` elements for each anchor and `stride` elements from cell to cell.
HPCAI_HOST_DEVICE inline std::int64_t anchor_index(const AnchorGrid& grid, int image, int anchor,
                                                   int elements, int stride) {
    const AnchorGrid::Level& level = grid.level[grid.level_of(anchor)];
    const int local = anchor - level.first;
    const std::int64_t cell =
        std::int64_t{image} * level.height * level.width + local / grid.per_cell;
    return cell * stride + local % grid.per_cell * elements;
}

}  // namespace hpcai::kernels
