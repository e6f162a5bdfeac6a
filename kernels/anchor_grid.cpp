// SPDX-License-Identifier: Apache-2.0
#include "anchor_grid.hpp"

#include <algorithm>

#include "stream.hpp"

namespace hpcai::kernels {

AnchorGrid make_anchor_grid(const ops::Anchors& anchors) {
    constexpr std::int64_t kMaxAnchors = 1 << 24;  // fp32 represents their indices exactly
    AnchorGrid grid;
    if (anchors.levels.empty() || anchors.levels.size() > AnchorGrid::kMaxLevels) {
        fail("the kernels do not support this number of levels of anchors");
    }
    std::int64_t count = 0;
    for (const ops::Anchors::Level& from : anchors.levels) {
        AnchorGrid::Level& to = grid.level[grid.levels++];
        if (from.cell_anchors.empty() || from.cell_anchors.size() > AnchorGrid::kMaxInCell ||
            from.cell_anchors.size() != anchors.levels.front().cell_anchors.size()) {
            fail("the kernels do not support this number of anchors in a cell");
        }
        to.first = static_cast<int>(count);
        to.height = static_cast<int>(from.height);
        to.width = static_cast<int>(from.width);
        to.stride = static_cast<int>(from.stride);
        for (std::size_t place = 0; place < from.cell_anchors.size(); ++place) {
            std::copy(from.cell_anchors[place].begin(), from.cell_anchors[place].end(),
                      to.cell[place]);
        }
        count += from.height * from.width * static_cast<std::int64_t>(from.cell_anchors.size());
        if (count >= kMaxAnchors) fail("the kernels do not support this number of anchors");
    }
    grid.per_cell = static_cast<int>(anchors.per_cell());
    grid.count = static_cast<int>(count);
    return grid;
}

}  // namespace hpcai::kernels
