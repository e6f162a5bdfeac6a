// SPDX-License-Identifier: Apache-2.0
#include "elements.cuh"
#include "proposals.hpp"
#include "select.cuh"
#include "suppression.hpp"

namespace hpcai::kernels {
namespace {

/// The arguments and workspace of one call. A chunk has up to kChunk anchors of a level.
struct Plan {
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
__device__ ops::Box decode_anchor(const Plan& plan, int image, int level, int anchor) {
    const AnchorGrid& grid = plan.grid;
    const T* deltas = static_cast<const T*>(plan.rpn.deltas[level]) +
                      anchor_index(grid, image, anchor, 4, plan.rpn.delta_stride);
    return ops::decode(
        {to_float(deltas[0]), to_float(deltas[1]), to_float(deltas[2]), to_float(deltas[3])},
        grid.box(level, anchor), ops::BoxCoder{});
}

/// Selects the best anchors of a chunk. blockIdx.x is the chunk, blockIdx.y the image.
template <typename T>
__global__ void __launch_bounds__(kSelectThreads, 1)
    chunk_best_kernel(const __grid_constant__ Plan plan) {
    const int chunk = static_cast<int>(blockIdx.x), image = static_cast<int>(blockIdx.y);
    int level = 0;
    while (chunk >= plan.first_chunk[level + 1]) ++level;
    const AnchorGrid& grid = plan.grid;
    const int before = (chunk - plan.first_chunk[level]) * kChunk;
    const int remaining = grid.count_of(level) - before;
    const int count = remaining < kChunk ? remaining : kChunk;
    const int first = grid.level[level].first + before, per_cell = grid.per_cell;
    const int pixels = grid.level[level].height * grid.level[level].width;
    const T* logits = static_cast<const T*>(plan.rpn.logits[level]) +
                      std::int64_t{image} * pixels * plan.rpn.logit_stride;
    const auto key_at = [&](int i) {
        const int pixel = (before + i) / per_cell, shape = (before + i) % per_cell;
        const T logit = logits[std::int64_t{pixel} * plan.rpn.logit_stride + shape];
        return rank_key(to_float(logit), static_cast<std::uint32_t>(first + i));
    };
    std::uint64_t* best =
        plan.chunk_best + (std::int64_t{image} * plan.chunks() + chunk) * plan.length;
    const int taken = select_smallest(key_at, count, plan.per_level,
                                      [&](int slot, std::uint64_t key) { best[slot] = key; });
    for (int i = taken + static_cast<int>(threadIdx.x); i < plan.length; i += kSelectThreads) {
        best[i] = kNoKey;
    }
}

/// Writes the boxes of a level, best first; blockIdx.x is the level, blockIdx.y the image.
template <typename T>
__global__ void __launch_bounds__(kSelectThreads, 1)
    level_boxes_kernel(const __grid_constant__ Plan plan) {
    __shared__ std::uint64_t sorted[kMaxSorted];
    const int level = static_cast<int>(blockIdx.x), image = static_cast<int>(blockIdx.y);
    const int chunks = plan.first_chunk[level + 1] - plan.first_chunk[level];
    const std::uint64_t* best =
        plan.chunk_best +
        (std::int64_t{image} * plan.chunks() + plan.first_chunk[level]) * plan.length;
    const int count = sorted_smallest([&](int i) { return best[i]; }, chunks * plan.length,
                                      plan.per_level, sorted);
    const std::int64_t list = std::int64_t{image} * plan.grid.levels + level;
    if (threadIdx.x == 0) plan.counts[list] = count;
    for (int i = static_cast<int>(threadIdx.x); i < plan.length; i += kSelectThreads) {
        ops::Box box;
        bool is_valid = false;
        if (i < count) {
            box = decode_anchor<T>(plan, image, level, static_cast<int>(index_of(sorted[i])));
            is_valid = clip_to_image(box, plan.bounds);
        }
        plan.keys[list * plan.length + i] = is_valid ? sorted[i] : kNoKey;
        reinterpret_cast<float4*>(plan.boxes)[list * plan.length + i] =
            is_valid ? float4{box.x1, box.y1, box.x2, box.y2} : float4{0, 0, 0, 0};
    }
}

/// Selects the best boxes of all levels, with one block per image.
template <typename T>
__global__ void __launch_bounds__(kSelectThreads, 1)
    write_kernel(const __grid_constant__ Plan plan) {
    __shared__ std::uint64_t sorted[kMaxSorted];
    const int image = static_cast<int>(blockIdx.x), candidates = plan.grid.levels * plan.length;
    const std::uint64_t* keys = plan.keys + std::int64_t{image} * candidates;
    const int count =
        sorted_smallest([&](int i) { return keys[i]; }, candidates, plan.limit, sorted);
    for (int i = static_cast<int>(threadIdx.x); i < plan.limit; i += kSelectThreads) {
        ops::Box box;
        float score = -1;
        if (i < count) {
            const int anchor = static_cast<int>(index_of(sorted[i]));
            box = decode_anchor<T>(plan, image, plan.grid.level_of(anchor), anchor);
            clip_to_image(box, plan.bounds);
            score = 1 / (1 + expf(-score_of(sorted[i])));
        }
        float* row = plan.proposals + (std::int64_t{image} * plan.limit + i) * 5;
        row[0] = box.x1;
        row[1] = box.y1;
        row[2] = box.x2;
        row[3] = box.y2;
        row[4] = score;
    }
}

Plan lay_out(const ProposalsShape& shape, Scratch& workspace) {
    const AnchorGrid& grid = shape.grid;
    if (shape.images < 1 || shape.images > 65535 / grid.levels || shape.per_level < 1 ||
        shape.per_level > kMaxSorted || shape.limit < 1 || shape.limit > kMaxSorted) {
        fail("proposals: the sizes are outside the limits of ProposalsShape");
    }
    Plan plan{.grid = grid,
              .bounds = shape.bounds,
              .per_level = shape.per_level,
              .limit = shape.limit,
              .length = 1};
    for (int level = 0; level < grid.levels; ++level) {
        const int count = grid.count_of(level);
        plan.length = std::max(plan.length, std::min(count, shape.per_level));
        plan.first_chunk[level + 1] =
            plan.first_chunk[level] + static_cast<int>(divide_up(count, kChunk));
    }
    const std::int64_t images = shape.images, boxes = images * grid.levels * plan.length;
    plan.chunk_best = workspace.take<std::uint64_t>(images * plan.chunks() * plan.length);
    plan.keys = workspace.take<std::uint64_t>(boxes);
    plan.boxes = workspace.take<float>(boxes * 4);
    plan.counts = workspace.take<std::int32_t>(images * grid.levels);
    plan.overlaps = workspace.take<unsigned long long>(boxes * divide_up(plan.length, 64));
    return plan;
}

}  // namespace

std::size_t proposals_workspace_bytes(const ProposalsShape& shape) {
    Scratch counted;
    lay_out(shape, counted);
    return counted.bytes();
}

void proposals(const ProposalsShape& shape, const ProposalsArguments& arguments, Stream stream) {
    Scratch workspace(arguments.workspace);
    Plan plan = lay_out(shape, workspace);
    plan.rpn = arguments.rpn;
    plan.proposals = arguments.proposals;
    const auto images = static_cast<unsigned>(shape.images);
    const auto levels = static_cast<unsigned>(plan.grid.levels);
    with_type(arguments.rpn.dtype, [&]<typename T>() {
        launch(chunk_best_kernel<T>,
               {.blocks_x = static_cast<unsigned>(plan.chunks()),
                .blocks_y = images,
                .threads = kSelectThreads,
                .stream = stream},
               plan);
        launch(
            level_boxes_kernel<T>,
            {.blocks_x = levels, .blocks_y = images, .threads = kSelectThreads, .stream = stream},
            plan);
        suppress({.lists = images * levels,
                  .length = plan.length,
                  .max_iou = shape.nms_iou,
                  .counts = plan.counts,
                  .boxes = plan.boxes,
                  .keys = plan.keys,
                  .overlaps = plan.overlaps},
                 stream);
        launch(write_kernel<T>, {.blocks_x = images, .threads = kSelectThreads, .stream = stream},
               plan);
    });
}

}  // namespace hpcai::kernels
