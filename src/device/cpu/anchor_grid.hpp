// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <hpcai/ops/box_math.hpp>

#include "numbers.hpp"

namespace hpcai::device::cpu {

/// Locates an anchor: its level, cell and index in the cell.
struct AnchorIndex {
    std::size_t level = 0;
    std::int64_t pixel = 0;  // number of the cell: y * width + x
    std::int64_t index = 0;  // in Level::cell_anchors
};

/// Computes the anchors of an image, which are numbered as in ops::Anchors.
class AnchorGrid {
public:
    explicit AnchorGrid(const ops::Anchors& anchors);

    std::size_t levels() const { return anchors_.levels.size(); }
    /// The number of the first anchor of `level`, or count() if `level` is levels().
    std::int64_t first(std::size_t level) const { return first_[level]; }
    std::int64_t count(std::size_t level) const { return first_[level + 1] - first_[level]; }
    std::int64_t count() const { return first_.back(); }
    AnchorIndex index_of(std::int64_t number) const;
    ops::Box box(const AnchorIndex& at) const;

private:
    ops::Anchors anchors_;
    std::vector<std::int64_t> first_;  // (levels + 1)
};

/// Reads the outputs of a region proposal network: for each level logits (N, H, W, A) and deltas
/// (N, H, W, 4 A), with A anchors per cell.
class RpnOutputs {
public:
    RpnOutputs(std::int64_t batch, const ops::Anchors& anchors, const Layouts& layouts,
               DType dtype);

    const ImageAccessor& logits(std::size_t level) const { return accessors_[level]; }
    const ImageAccessor& deltas(std::size_t level) const {
        return accessors_[accessors_.size() / 2 + level];
    }
    /// `values` are the tensors of the logits of all levels, then of the deltas of all levels.
    float logit(const std::vector<void*>& values, std::int64_t image, const AnchorIndex& at) const;
    ops::BoxDeltas deltas(const std::vector<void*>& values, std::int64_t image,
                          const AnchorIndex& at) const;

private:
    std::vector<ImageAccessor> accessors_;
};

}  // namespace hpcai::device::cpu
