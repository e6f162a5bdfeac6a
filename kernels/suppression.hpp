// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "stream.hpp"

/// Non-maximum suppression of boxes in the order of their scores.
namespace hpcai::kernels {

/// Lists of up to 4096 boxes each, best first. Boxes with key kNoKey are ignored.
struct RankedLists {
    std::int64_t lists = 0;   // 1 to 65535
    std::int64_t length = 0;  // capacity of a list, 1 to 4096
    float max_iou = 0;
    const std::int32_t* counts = nullptr;  // (lists), boxes of each list
    const float* boxes = nullptr;          // (lists, length, 4), 16-byte aligned
    std::uint64_t* keys = nullptr;         // (lists, length), see rank_key.hpp
    /// Scratch of (lists, length, overlap_words()).
    unsigned long long* overlaps = nullptr;

    std::int64_t overlap_words() const { return (length + 63) / 64; }
};

/// Sets the key of each box to kNoKey if its IoU with an earlier box that keeps its key is above
/// `max_iou`. Throws Error(internal) for lists beyond the limits of RankedLists.
void suppress(const RankedLists& lists, Stream stream);

}  // namespace hpcai::kernels
