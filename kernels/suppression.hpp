// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "stream.hpp"

/// Of boxes in the order of their scores, those that remain beside better ones.
namespace hpcai::kernels {

/// Lists of up to 4096 boxes. Those without a key (kNoKey) take no part.
struct RankedLists {
    std::int64_t lists = 0;   // up to 65535
    std::int64_t length = 0;  // room of a list
    float largest_iou = 0;
    const std::int32_t* counts = nullptr;  // (lists), what is behind is not read
    const float* boxes = nullptr;          // (lists, length, 4), at a multiple of 16 bytes
    std::uint64_t* keys = nullptr;         // (lists, length)
    /// (lists, length, overlap_words()) of scratch.
    unsigned long long* overlaps = nullptr;

    std::int64_t overlap_words() const { return (length + 63) / 64; }
};

/// Takes the key from each box whose IoU with an earlier one that keeps its key is above
/// `largest_iou`.
void suppress(const RankedLists& lists, Stream stream);

}  // namespace hpcai::kernels
