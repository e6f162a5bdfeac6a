// SPDX-License-Identifier: Apache-2.0
#include "anchor_grid.hpp"

#include <hpcai/base/error.hpp>

namespace hpcai::device::cpu {

AnchorGrid::AnchorGrid(const ops::Anchors& anchors) : anchors_(anchors), first_{0} {
    ensure(!anchors.levels.empty(), "anchors need at least one level");
    for (const ops::Anchors::Level& level : anchors.levels) {
        ensure(static_cast<std::int64_t>(level.cell_anchors.size()) == anchors.per_cell(),
               "a level has {} anchors per cell, but the first level has {}",
               level.cell_anchors.size(), anchors.per_cell());
        first_.push_back(first_.back() + level.height * level.width * anchors.per_cell());
    }
}

AnchorIndex AnchorGrid::index_of(std::int64_t number) const {
    std::size_t level = 0;
    while (number >= first_[level + 1]) ++level;
    const std::int64_t local = number - first_[level];
    return {level, local / anchors_.per_cell(), local % anchors_.per_cell()};
}

ops::Box AnchorGrid::box(const AnchorIndex& at) const {
    const ops::Anchors::Level& level = anchors_.levels[at.level];
    const auto& base = level.cell_anchors[at.index];
    const auto x = static_cast<float>(at.pixel % level.width * level.stride);
    const auto y = static_cast<float>(at.pixel / level.width * level.stride);
    return {base[0] + x, base[1] + y, base[2] + x, base[3] + y};
}

RpnOutputs::RpnOutputs(std::int64_t batch, const ops::Anchors& anchors, const Layouts& layouts,
                       DType dtype) {
    for (const std::int64_t per_anchor : {1, 4}) {
        for (const ops::Anchors::Level& level : anchors.levels) {
            const Shape shape{batch, level.height, level.width, per_anchor * anchors.per_cell()};
            accessors_.emplace_back(layouts, shape, dtype);
        }
    }
}

float RpnOutputs::logit(const std::vector<void*>& values, std::int64_t image,
                        const AnchorIndex& at) const {
    const ImageAccessor& accessor = logits(at.level);
    return accessor.read(values[at.level], accessor.index(image, at.pixel, at.index));
}

ops::BoxDeltas RpnOutputs::deltas(const std::vector<void*>& values, std::int64_t image,
                                  const AnchorIndex& at) const {
    const ImageAccessor& accessor = deltas(at.level);
    const void* from = values[accessors_.size() / 2 + at.level];
    const auto delta = [&](std::int64_t which) {
        return accessor.read(from, accessor.index(image, at.pixel, 4 * at.index + which));
    };
    return {delta(0), delta(1), delta(2), delta(3)};
}

}  // namespace hpcai::device::cpu
