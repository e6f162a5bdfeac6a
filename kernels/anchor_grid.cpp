// SPDX-License-Identifier: Apache-2.0
#include "anchor_grid.hpp"

#include <algorithm>
#include <string>

#include "stream.hpp"

namespace hpcai::kernels {

AnchorGrid make_anchor_grid(const ops::Anchors& anchors) {
    constexpr std::int64_t kMaxAnchors = 1 << 24;  // fp32 represents smaller indices exactly
    AnchorGrid grid;
    if (anchors.levels.empty() || anchors.levels.size() > AnchorGrid::kMaxLevels) {
        fail("anchors: expected 1 to 6 levels, got", std::to_string(anchors.levels.size()).c_str());
    }
    std::int64_t count = 0;
    for (const ops::Anchors::Level& from : anchors.levels) {
        AnchorGrid::Level& to = grid.level[grid.levels++];
        if (from.cell_anchors.empty() || from.cell_anchors.size() > AnchorGrid::kMaxInCell ||
            from.cell_anchors.size() != anchors.levels.front().cell_anchors.size()) {
            fail("anchors: expected the same number in each cell, 1 to 32, got",
                 std::to_string(from.cell_anchors.size()).c_str());
        }
        to.first = static_cast<int>(count);
        to.height = static_cast<int>(from.height);
        to.width = static_cast<int>(from.width);
        to.stride = static_cast<int>(from.stride);
        for (std::size_t i = 0; i < from.cell_anchors.size(); ++i) {
            std::copy(from.cell_anchors[i].begin(), from.cell_anchors[i].end(), to.cell[i]);
        }
        count += from.height * from.width * static_cast<std::int64_t>(from.cell_anchors.size());
        if (count >= kMaxAnchors) fail("anchors: expected fewer than 2^24");
    }
    grid.per_cell = static_cast<int>(anchors.per_cell());
    grid.count = static_cast<int>(count);
    return grid;
}

}  // namespace hpcai::kernels
