// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <hpcai/ops/box_math.hpp>

#include "numbers.hpp"

namespace hpcai::device::cpu {

/// The level of an anchor and its place on that level.
struct AnchorPlace {
    std::size_t level = 0;
    std::int64_t pixel = 0;  // its cell: y * width + x
    std::int64_t place = 0;  // index in Level::cell
};

/// Computes anchors from their numbers.
class AnchorGrid {
public:
    explicit AnchorGrid(const ops::Anchors& anchors);

    const ops::Anchors& anchors() const { return anchors_; }
    std::size_t levels() const { return anchors_.levels.size(); }
    /// The number of the first anchor of `level`, or count() if `level` is levels().
    std::int64_t first(std::size_t level) const { return first_[level]; }
    std::int64_t count(std::size_t level) const { return first_[level + 1] - first_[level]; }
    std::int64_t count() const { return first_.back(); }
    AnchorPlace place_of(std::int64_t number) const;
    ops::Box box(const AnchorPlace& place) const;

private:
    ops::Anchors anchors_;
    std::vector<std::int64_t> first_;  // (levels + 1)
};

/// Access to the outputs of a region proposal network: for each level an image of logits (N, H, W,
/// A) and one of deltas (N, H, W, 4 A).
class AnchorNumbers {
public:
    AnchorNumbers(std::int64_t batch, const ops::Anchors& anchors, const Layouts& layouts,
                  DType dtype);

    const ImageNumbers& logits(std::size_t level) const { return images_[level]; }
    const ImageNumbers& deltas(std::size_t level) const {
        return images_[images_.size() / 2 + level];
    }
    /// `values` are the tensors of the logits of all levels, then those of the deltas.
    float logit(const std::vector<void*>& values, std::int64_t image, const AnchorPlace& at) const;
    ops::BoxDeltas deltas(const std::vector<void*>& values, std::int64_t image,
                          const AnchorPlace& at) const;

private:
    std::vector<ImageNumbers> images_;
};

}  // namespace hpcai::device::cpu
