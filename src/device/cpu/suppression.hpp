// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>

#include <hpcai/ops/box_math.hpp>

#include "context.hpp"
#include "scratch.hpp"

/// Non-maximum suppression by descending score: drops boxes whose IoU with a kept box is too high.
namespace hpcai::device::cpu {

/// Returns a sort key: lowest for the best score, ascending with `number` in a tie, highest for
/// NaN.
inline std::uint64_t rank_key(float score, std::int64_t number) {
    const auto bits = std::bit_cast<std::uint32_t>(score + 0.0f);  // -0 is 0
    // As integers, the bits of positive numbers grow with the number; those of negative ones fall.
    const std::uint32_t ascending = bits >> 31 != 0 ? ~bits : bits | 0x80000000u;
    const std::uint32_t descending = score != score ? 0xffffffffu : ~ascending;
    return std::uint64_t{descending} << 32 | static_cast<std::uint32_t>(number);
}
inline std::int64_t number_of(std::uint64_t key) {
    return static_cast<std::int64_t>(key & 0xffffffffu);
}
inline float score_of(std::uint64_t key) {
    const std::uint32_t ascending = ~static_cast<std::uint32_t>(key >> 32);
    return std::bit_cast<float>(ascending >> 31 != 0 ? ascending & 0x7fffffffu : ~ascending);
}

/// The boxes that suppression has kept, with their rank_key(), best first.
struct RankedBoxes {
    BoxColumns columns{};
    std::uint64_t* keys = nullptr;
    std::int64_t count = 0;

    /// Takes memory for `capacity` boxes.
    void lay_out(Scratch& scratch, std::int64_t capacity) {
        for (float** column : {&columns.x1, &columns.y1, &columns.x2, &columns.y2, &columns.area}) {
            *column = scratch.take<float>(capacity);
        }
        keys = scratch.take<std::uint64_t>(capacity);
    }
    /// Appends a box unless its IoU with a box in the list is above `max_iou`.
    void try_add(const ops::Box& box, std::uint64_t key, float max_iou, const SimdKernels& loops) {
        const float area = ops::area_of(box);
        if (loops.overlaps(columns, count, {box.x1, box.y1, box.x2, box.y2, area, max_iou})) return;
        columns.x1[count] = box.x1;
        columns.y1[count] = box.y1;
        columns.x2[count] = box.x2;
        columns.y2[count] = box.y2;
        columns.area[count] = area;
        keys[count++] = key;
    }
    ops::Box box(std::int64_t index) const {
        return {columns.x1[index], columns.y1[index], columns.x2[index], columns.y2[index]};
    }
};

/// Calls body(list, index in the list) for the `limit` best boxes of all lists, the best first;
/// `next` is scratch memory for one number per list. Returns the number of calls.
std::int64_t for_each_best(const RankedBoxes* lists, std::int64_t list_count, std::int64_t* next,
                           std::int64_t limit, const auto& body) {
    for (std::int64_t list = 0; list < list_count; ++list) next[list] = 0;
    for (std::int64_t taken = 0; taken < limit; ++taken) {
        std::int64_t best = -1;
        for (std::int64_t list = 0; list < list_count; ++list) {
            if (next[list] == lists[list].count) continue;
            if (best < 0 || lists[list].keys[next[list]] < lists[best].keys[next[best]])
                best = list;
        }
        if (best < 0) return taken;
        body(lists[best], next[best]++);
    }
    return limit;
}

}  // namespace hpcai::device::cpu
