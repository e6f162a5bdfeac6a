// SPDX-License-Identifier: Apache-2.0
#include <hpcai/ops/box_math.hpp>

#include "elements.cuh"
#include "suppression.hpp"

namespace hpcai::kernels {
namespace {

using Word = unsigned long long;

constexpr int kTile = 64;  // boxes, one for each bit of a word
constexpr int kMaxWords = 64;
constexpr int kSuppressThreads = 256;

__device__ inline ops::Box box_of(const float4& numbers) {
    return {numbers.x, numbers.y, numbers.z, numbers.w};
}

/// Compares each box of a tile with the later boxes of its own or a later tile. blockIdx.x is the
/// pair of tiles, blockIdx.y the list.
__global__ void __launch_bounds__(kTile) overlap_kernel(BoxLists lists, int words) {
    __shared__ float4 column_boxes[kTile];
    const int row_tile = static_cast<int>(blockIdx.x) / words;
    const int column_tile = static_cast<int>(blockIdx.x) % words;
    const std::int64_t list = blockIdx.y;
    const int count = lists.counts[list];
    if (column_tile < row_tile || column_tile * kTile >= count) return;
    const auto* boxes = reinterpret_cast<const float4*>(lists.boxes) + list * lists.length;
    const int thread = static_cast<int>(threadIdx.x);
    const int row = row_tile * kTile + thread, column = column_tile * kTile + thread;
    column_boxes[thread] = column < count ? boxes[column] : float4{0, 0, 0, 0};
    __syncthreads();
    if (row >= count) return;
    const ops::Box box = box_of(boxes[row]);
    const int first = column_tile == row_tile ? thread + 1 : 0;
    const int remaining = count - column_tile * kTile, end = remaining < kTile ? remaining : kTile;
    Word word = 0;
    for (int i = first; i < end; ++i) {
        if (ops::iou_of(box_of(column_boxes[i]), box) > lists.max_iou) word |= Word{1} << i;
    }
    lists.overlaps[(list * lists.length + row) * words + column_tile] = word;
}

/// One block for each list. `suppressed` marks entries without a box or key, and boxes that a kept
/// box of an earlier tile suppresses.
__global__ void __launch_bounds__(kSuppressThreads) suppress_kernel(BoxLists lists, int words) {
    __shared__ Word suppressed[kMaxWords], tile_overlaps[kTile], kept;
    const std::int64_t list = blockIdx.x;
    const int count = lists.counts[list], thread = static_cast<int>(threadIdx.x);
    std::uint64_t* keys = lists.keys + list * lists.length;
    const Word* overlaps = lists.overlaps + list * lists.length * words;
    if (thread < kMaxWords) suppressed[thread] = 0;
    __syncthreads();
    for (int tile = 0; tile * kTile < count; ++tile) {
        const int row = tile * kTile + thread;
        const bool is_row = thread < kTile && row < count;
        if (thread < kTile) {
            tile_overlaps[thread] = is_row ? overlaps[std::int64_t{row} * words + tile] : 0;
            if (!is_row || keys[row] == kNoKey) atomicOr(&suppressed[tile], Word{1} << thread);
        }
        __syncthreads();
        if (thread == 0) {
            Word removed = suppressed[tile];
            for (int i = 0; i < kTile; ++i) {
                if (!(removed >> i & 1)) removed |= tile_overlaps[i];
            }
            kept = ~removed;
        }
        __syncthreads();
        if (is_row && !(kept >> thread & 1)) keys[row] = kNoKey;
        constexpr int kRows = kTile * kMaxWords / kSuppressThreads;  // per thread
        const int word = thread % kMaxWords, first = thread / kMaxWords * kRows;
        if (word > tile && word * kTile < count) {
            Word all = 0;
            for (int i = first; i < first + kRows; ++i) {
                if (!(kept >> i & 1)) continue;
                all |= overlaps[(std::int64_t{tile} * kTile + i) * words + word];
            }
            if (all != 0) atomicOr(&suppressed[word], all);
        }
        __syncthreads();
    }
}

}  // namespace

void suppress(const BoxLists& lists, Stream stream) {
    if (lists.length < 1 || lists.length > kTile * kMaxWords || lists.lists < 1 ||
        lists.lists > 65535) {
        fail("suppress: the lists are outside the limits of BoxLists");
    }
    const int words = static_cast<int>(lists.overlap_words());
    launch(overlap_kernel,
           {.blocks_x = words * words, .blocks_y = lists.lists, .threads = kTile, .stream = stream},
           lists, words);
    launch(suppress_kernel,
           {.blocks_x = lists.lists, .threads = kSuppressThreads, .stream = stream}, lists, words);
}

}  // namespace hpcai::kernels
