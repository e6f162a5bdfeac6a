// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include <hpcai/ops/box_math.hpp>

#include "stream.hpp"

namespace hpcai::kernels {

/// The sort key of an excluded element, above all other keys. Other 64-bit sort keys are unique,
/// because their low half is the index of the element.
inline constexpr std::uint64_t kNoKey = ~std::uint64_t{0};

/// Returns the sort key that puts higher scores first and, in a tie, the lower index; kNoKey for
/// NaN. Bits of floats ascend with the magnitude, so those of positive scores are inverted.
HPCAI_HOST_DEVICE inline std::uint64_t rank_key(float score, std::uint32_t index) {
    if (score != score) return kNoKey;
    const auto bits = __builtin_bit_cast(std::uint32_t, score + 0.0f);  // -0 becomes 0
    const std::uint32_t descending = bits >> 31 != 0 ? bits : ~bits & 0x7fffffffu;
    return std::uint64_t{descending} << 32 | index;
}
HPCAI_HOST_DEVICE inline float score_of(std::uint64_t key) {
    const auto descending = static_cast<std::uint32_t>(key >> 32);
    return __builtin_bit_cast(float,
                              descending >> 31 != 0 ? descending : ~descending & 0x7fffffffu);
}
HPCAI_HOST_DEVICE inline std::uint32_t index_of(std::uint64_t key) {
    return static_cast<std::uint32_t>(key);
}

/// The pseudo-random key of a candidate; the smallest keys are drawn first (ops::sampling_key).
HPCAI_HOST_DEVICE inline std::uint64_t draw_key(std::int32_t image_key, std::uint32_t stage,
                                                std::uint32_t candidate) {
    const std::uint32_t high =
        ops::sampling_key(static_cast<std::uint32_t>(image_key), stage, candidate);
    return std::uint64_t{high} << 32 | candidate;
}

/// The input of non-maximum suppression: lists of up to 4096 boxes each, best first. Boxes with key
/// kNoKey are ignored.
struct BoxLists {
    std::int64_t lists = 0;   // 1 to 65535
    std::int64_t length = 0;  // capacity of a list, 1 to 4096
    float max_iou = 0;
    const std::int32_t* counts = nullptr;    // (lists), boxes of each list
    const float* boxes = nullptr;            // (lists, length, 4), 16-byte aligned
    std::uint64_t* keys = nullptr;           // (lists, length), see rank_key()
    unsigned long long* overlaps = nullptr;  // scratch (lists, length, overlap_words())

    std::int64_t overlap_words() const { return (length + 63) / 64; }
};

/// Sets the key of each box to kNoKey if its IoU with an earlier box that keeps its key is above
/// `max_iou`. Throws Error(internal) for lists beyond the limits of BoxLists.
void suppress(const BoxLists& lists, Stream stream);

}  // namespace hpcai::kernels
