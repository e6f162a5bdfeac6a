// SPDX-License-Identifier: Apache-2.0
#include "elements.cuh"
#include "proposals.hpp"
#include "select.cuh"
#include "suppression.hpp"

namespace hpcai::kernels {
namespace {

/// The arguments and workspace of one call. A chunk has up to kChunk anchors of a level.
struct Call {
    AnchorGrid grid;
    RpnOutputs rpn;
    ops::ImageBounds bounds;
    int per_level, limit;
    int length;  // capacity of a list of boxes, the same for all levels
    int first_chunk[AnchorGrid::kMaxLevels + 1];  // of each level, then the number of chunks
    std::uint64_t* chunk_best;                    // (N, chunks, length)
    std::uint64_t* keys;                          // (N, levels, length)
    float* boxes;                                 // (N, levels, length, 4)
    std::int32_t* counts;                         // (N, levels)
    unsigned long long* overlaps;
    float* proposals;

    __host__ __device__ int chunks() const { return first_chunk[grid.levels]; }
};

template <typename T>
__device__ ops::Box decode_anchor(const Call& call, int image, int level, int anchor) {
    const AnchorGrid& grid = call.grid;
    const T* deltas = static_cast<const T*>(call.rpn.deltas[level]) +
                      anchor_index(grid, image, anchor, 4, call.rpn.delta_stride);
    return ops::decode(
        {to_float(deltas[0]), to_float(deltas[1]), to_float(deltas[2]), to_float(deltas[3])},
        grid.box(level, anchor), ops::BoxCoder{});
}

/// Selects the best anchors of a chunk. blockIdx.x is the chunk, blockIdx.y the image.
template <typename T>
__global__ void __launch_bounds__(kSelectThreads, 1)
    chunk_best_kernel(const __grid_constant__ Call call) {
    const int chunk = static_cast<int>(blockIdx.x), image = static_cast<int>(blockIdx.y);
    int level = 0;
    while (chunk >= call.first_chunk[level + 1]) ++level;
    const AnchorGrid& grid = call.grid;
    const int before = (chunk - call.first_chunk[level]) * kChunk;
    const int remaining = grid.count_of(level) - before;
    const int count = remaining < kChunk ? remaining : kChunk;
    const int first = grid.level[level].first + before, per_cell = grid.per_cell;
    const int pixels = grid.level[level].height * grid.level[level].width;
    const T* logits = static_cast<const T*>(call.rpn.logits[level]) +
                      std::int64_t{image} * pixels * call.rpn.logit_stride;
    const auto key_at = [&](int i) {
        const int pixel = (before + i) / per_cell, shape = (before + i) % per_cell;
        const T logit = logits[std::int64_t{pixel} * call.rpn.logit_stride + shape];
        return rank_key(to_float(logit), static_cast<std::uint32_t>(first + i));
    };
    std::uint64_t* best =
        call.chunk_best + (std::int64_t{image} * call.chunks() + chunk) * call.length;
    const int taken = select_smallest(key_at, count, call.per_level,
                                      [&](int slot, std::uint64_t key) { best[slot] = key; });
    for (int i = taken + static_cast<int>(threadIdx.x); i < call.length; i += kSelectThreads) {
        best[i] = kNoKey;
    }
}

/// Writes the boxes of a level, best first; blockIdx.x is the level, blockIdx.y the image.
template <typename T>
__global__ void __launch_bounds__(kSelectThreads, 1)
    level_boxes_kernel(const __grid_constant__ Call call) {
    __shared__ std::uint64_t sorted[kMaxSorted];
    const int level = static_cast<int>(blockIdx.x), image = static_cast<int>(blockIdx.y);
    const int chunks = call.first_chunk[level + 1] - call.first_chunk[level];
    const std::uint64_t* best =
        call.chunk_best +
        (std::int64_t{image} * call.chunks() + call.first_chunk[level]) * call.length;
    const int count = sorted_smallest([&](int i) { return best[i]; }, chunks * call.length,
                                      call.per_level, sorted);
    const std::int64_t list = std::int64_t{image} * call.grid.levels + level;
    if (threadIdx.x == 0) call.counts[list] = count;
    for (int i = static_cast<int>(threadIdx.x); i < call.length; i += kSelectThreads) {
        ops::Box box;
        bool is_valid = false;
        if (i < count) {
            box = decode_anchor<T>(call, image, level, static_cast<int>(index_of(sorted[i])));
            is_valid = clip_to_image(box, call.bounds);
        }
        call.keys[list * call.length + i] = is_valid ? sorted[i] : kNoKey;
        reinterpret_cast<float4*>(call.boxes)[list * call.length + i] =
            is_valid ? float4{box.x1, box.y1, box.x2, box.y2} : float4{0, 0, 0, 0};
    }
}

/// Selects the best boxes of all levels, with one block per image.
template <typename T>
__global__ void __launch_bounds__(kSelectThreads, 1)
    write_kernel(const __grid_constant__ Call call) {
    __shared__ std::uint64_t sorted[kMaxSorted];
    const int image = static_cast<int>(blockIdx.x), candidates = call.grid.levels * call.length;
    const std::uint64_t* keys = call.keys + std::int64_t{image} * candidates;
    const int count =
        sorted_smallest([&](int i) { return keys[i]; }, candidates, call.limit, sorted);
    for (int i = static_cast<int>(threadIdx.x); i < call.limit; i += kSelectThreads) {
        ops::Box box;
        float score = -1;
        if (i < count) {
            const int anchor = static_cast<int>(index_of(sorted[i]));
            box = decode_anchor<T>(call, image, call.grid.level_of(anchor), anchor);
            clip_to_image(box, call.bounds);
            score = 1 / (1 + expf(-score_of(sorted[i])));
        }
        float* row = call.proposals + (std::int64_t{image} * call.limit + i) * 5;
        row[0] = box.x1;
        row[1] = box.y1;
        row[2] = box.x2;
        row[3] = box.y2;
        row[4] = score;
    }
}

Call lay_out(const ProposalsShape& shape, Scratch& workspace) {
    const AnchorGrid& grid = shape.grid;
    if (shape.images < 1 || shape.images > 65535 / grid.levels || shape.per_level < 1 ||
        shape.per_level > kMaxSorted || shape.limit < 1 || shape.limit > kMaxSorted) {
        fail("proposals: the sizes are outside the limits of ProposalsShape");
    }
    Call call{.grid = grid,
              .bounds = shape.bounds,
              .per_level = shape.per_level,
              .limit = shape.limit,
              .length = 1};
    for (int level = 0; level < grid.levels; ++level) {
        const int count = grid.count_of(level);
        call.length = std::max(call.length, std::min(count, shape.per_level));
        call.first_chunk[level + 1] =
            call.first_chunk[level] + static_cast<int>(divide_up(count, kChunk));
    }
    const std::int64_t images = shape.images, boxes = images * grid.levels * call.length;
    call.chunk_best = workspace.take<std::uint64_t>(images * call.chunks() * call.length);
    call.keys = workspace.take<std::uint64_t>(boxes);
    call.boxes = workspace.take<float>(boxes * 4);
    call.counts = workspace.take<std::int32_t>(images * grid.levels);
    call.overlaps = workspace.take<unsigned long long>(boxes * divide_up(call.length, 64));
    return call;
}

}  // namespace

std::size_t proposals_workspace_bytes(const ProposalsShape& shape) {
    Scratch counted;
    lay_out(shape, counted);
    return counted.bytes();
}

void proposals(const ProposalsShape& shape, const ProposalsArguments& arguments, Stream stream) {
    Scratch workspace(arguments.workspace);
    Call call = lay_out(shape, workspace);
    call.rpn = arguments.rpn;
    call.proposals = arguments.proposals;
    const std::int64_t images = shape.images, levels = call.grid.levels;
    with_type(arguments.rpn.dtype, [&]<typename T>() {
        launch(chunk_best_kernel<T>,
               {.blocks_x = call.chunks(),
                .blocks_y = images,
                .threads = kSelectThreads,
                .stream = stream},
               call);
        launch(
            level_boxes_kernel<T>,
            {.blocks_x = levels, .blocks_y = images, .threads = kSelectThreads, .stream = stream},
            call);
        suppress({.lists = images * levels,
                  .length = call.length,
                  .max_iou = shape.nms_iou,
                  .counts = call.counts,
                  .boxes = call.boxes,
                  .keys = call.keys,
                  .overlaps = call.overlaps},
                 stream);
        launch(write_kernel<T>, {.blocks_x = images, .threads = kSelectThreads, .stream = stream},
               call);
    });
}

}  // namespace hpcai::kernels
