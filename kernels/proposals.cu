// SPDX-License-Identifier: Apache-2.0
#include "elements.cuh"
#include "proposals.hpp"
#include "select.cuh"
#include "suppression.hpp"

namespace hpcai::kernels {
namespace {

/// The arguments and workspace of one call. A chunk has up to kChunk anchors of a level.
struct ProposalsCall {
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
__device__ ops::Box decode_anchor(const ProposalsCall& call, int image, int level, int anchor) {
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
    chunk_best_kernel(const __grid_constant__ ProposalsCall call) {
    const int chunk = static_cast<int>(blockIdx.x), image = static_cast<int>(blockIdx.y);
    int level = 0;
    while (chunk >= call.first_chunk[level + 1]) ++level;
    const AnchorGrid& grid = call.grid;
    const int before = (chunk - call.first_chunk[level]) * kChunk;
    const int remaining = grid.count_of(level) - before;
    const int count = remaining < kChunk ? remaining : kChunk;
    const int first = grid.level[level].first + before, per_cell = grid.per_cell;
    const int cells = grid.level[level].height * grid.level[level].width;
    const T* logits = static_cast<const T*>(call.rpn.logits[level]) +
                      std::int64_t{image} * cells * call.rpn.logit_stride;
    const auto key_at = [&](int i) {
        const int cell = (before + i) / per_cell, in_cell = (before + i) % per_cell;
        const T logit = logits[std::int64_t{cell} * call.rpn.logit_stride + in_cell];
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
    level_boxes_kernel(const __grid_constant__ ProposalsCall call) {
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
    proposals_kernel(const __grid_constant__ ProposalsCall call) {
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

ProposalsCall lay_out(const ProposalsShape& shape, Scratch& workspace) {
    const AnchorGrid& grid = shape.grid;
    if (shape.images < 1 || shape.images > 65535 / grid.levels || shape.per_level < 1 ||
        shape.per_level > kMaxSorted || shape.limit < 1 || shape.limit > kMaxSorted) {
        fail("proposals: the sizes are outside the limits of ProposalsShape");
    }
    ProposalsCall call{.grid = grid,
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

/// The arguments and workspace of one call. Each class of an image except background has a list of
/// boxes. Boxes with equal scores are in the order of their index, class x regions + region.
struct DetectionsCall {
    DetectionsShape shape;
    DetectionsArguments args;
    float* scores;         // (N R, K)
    std::uint64_t* keys;   // (N, K - 1, R)
    float* boxes;          // (N, K - 1, R, 4)
    std::int32_t* counts;  // (N, K - 1)
    unsigned long long* overlaps;
};

__global__ void scores_kernel(const DetectionsCall call) {
    const int classes = call.shape.classes;
    const std::int64_t rows = std::int64_t{call.shape.images} * call.shape.regions;
    for (std::int64_t row = first_item(); row < rows; row += item_stride()) {
        const float* logits = call.args.logits + row * classes;
        float* scores = call.scores + row * classes;
        float highest = logits[0];
        for (int k = 1; k < classes; ++k) highest = highest < logits[k] ? logits[k] : highest;
        double sum = 0;
        for (int k = 0; k < classes; ++k) {
            scores[k] = expf(logits[k] - highest);
            sum += scores[k];
        }
        for (int k = 0; k < classes; ++k) scores[k] = static_cast<float>(scores[k] / sum);
    }
}

__device__ ops::Box decode_proposal(const DetectionsCall& call, std::int64_t row, int label) {
    const float* deltas = call.args.deltas + (row * call.shape.classes + label) * 4;
    return ops::decode({deltas[0], deltas[1], deltas[2], deltas[3]},
                       ops::box_of(call.args.proposals + row * 5), call.shape.coder);
}

/// Writes the boxes of a class, best first. blockIdx.x is the class minus 1, because background has
/// no list; blockIdx.y is the image.
__global__ void __launch_bounds__(kSelectThreads, 1) class_boxes_kernel(const DetectionsCall call) {
    __shared__ std::uint64_t sorted[kMaxSorted];
    const int regions = call.shape.regions, classes = call.shape.classes;
    const int label = static_cast<int>(blockIdx.x) + 1;
    const std::int64_t first_row = std::int64_t{blockIdx.y} * regions;
    const auto key_at = [&](int region) {
        const std::int64_t row = first_row + region;
        const float score = call.scores[row * classes + label];
        const bool is_valid =
            call.args.proposals[row * 5 + 4] >= 0 && score > call.shape.score_threshold;
        return is_valid ? rank_key(score, static_cast<std::uint32_t>(label * regions + region))
                        : kNoKey;
    };
    const int count = sorted_smallest(key_at, regions, regions, sorted);
    const std::int64_t list = std::int64_t{blockIdx.y} * (classes - 1) + blockIdx.x;
    if (threadIdx.x == 0) call.counts[list] = count;
    for (int i = static_cast<int>(threadIdx.x); i < count; i += kSelectThreads) {
        const int region = static_cast<int>(index_of(sorted[i])) - label * regions;
        ops::Box box = decode_proposal(call, first_row + region, label);
        const bool is_valid = clip_to_image(box, call.shape.bounds);
        call.keys[list * regions + i] = is_valid ? sorted[i] : kNoKey;
        reinterpret_cast<float4*>(call.boxes)[list * regions + i] =
            is_valid ? float4{box.x1, box.y1, box.x2, box.y2} : float4{0, 0, 0, 0};
    }
    for (int i = count + static_cast<int>(threadIdx.x); i < regions; i += kSelectThreads) {
        call.keys[list * regions + i] = kNoKey;
    }
}

/// Selects the best boxes of all classes, with one block per image.
__global__ void __launch_bounds__(kSelectThreads, 1) detections_kernel(const DetectionsCall call) {
    __shared__ std::uint64_t sorted[kMaxSorted];
    const int regions = call.shape.regions, candidates = (call.shape.classes - 1) * regions;
    const std::int64_t image = blockIdx.x;
    const std::uint64_t* keys = call.keys + image * candidates;
    const int count =
        sorted_smallest([&](int i) { return keys[i]; }, candidates, call.shape.limit, sorted);
    for (int i = static_cast<int>(threadIdx.x); i < call.shape.limit; i += kSelectThreads) {
        ops::Box box;
        float score = 0;
        int label = 0;
        if (i < count) {
            const int index = static_cast<int>(index_of(sorted[i]));
            label = index / regions;
            box = decode_proposal(call, image * regions + index % regions, label);
            clip_to_image(box, call.shape.bounds);
            score = score_of(sorted[i]);
        }
        float* row = call.args.detections + (image * call.shape.limit + i) * 6;
        row[0] = box.x1;
        row[1] = box.y1;
        row[2] = box.x2;
        row[3] = box.y2;
        row[4] = score;
        row[5] = static_cast<float>(label);
    }
}

DetectionsCall lay_out(const DetectionsShape& shape, Scratch& workspace) {
    constexpr int kMaxClasses = 1 << 12;  // so that indices of boxes fit into int
    if (shape.images < 1 || shape.classes < 2 || shape.classes > kMaxClasses ||
        shape.images > 65535 / (shape.classes - 1) || shape.regions < 1 ||
        shape.regions > kMaxSorted || shape.limit < 1 || shape.limit > kMaxSorted) {
        fail("detections: the sizes are outside the limits of DetectionsShape");
    }
    const std::int64_t lists = std::int64_t{shape.images} * (shape.classes - 1);
    const std::int64_t boxes = lists * shape.regions;
    DetectionsCall call{.shape = shape};
    call.scores = workspace.take<float>(std::int64_t{shape.images} * shape.regions * shape.classes);
    call.keys = workspace.take<std::uint64_t>(boxes);
    call.boxes = workspace.take<float>(boxes * 4);
    call.counts = workspace.take<std::int32_t>(lists);
    call.overlaps = workspace.take<unsigned long long>(boxes * divide_up(shape.regions, 64));
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
    ProposalsCall call = lay_out(shape, workspace);
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
        launch(proposals_kernel<T>,
               {.blocks_x = images, .threads = kSelectThreads, .stream = stream}, call);
    });
}

std::size_t detections_workspace_bytes(const DetectionsShape& shape) {
    Scratch counted;
    lay_out(shape, counted);
    return counted.bytes();
}

void detections(const DetectionsShape& shape, const DetectionsArguments& arguments, Stream stream) {
    Scratch workspace(arguments.workspace);
    DetectionsCall call = lay_out(shape, workspace);
    call.args = arguments;
    const std::int64_t images = shape.images, labels = shape.classes - 1;
    launch(scores_kernel, grid_over(images * shape.regions, stream), call);
    launch(class_boxes_kernel,
           {.blocks_x = labels, .blocks_y = images, .threads = kSelectThreads, .stream = stream},
           call);
    suppress({.lists = images * labels,
              .length = shape.regions,
              .max_iou = shape.nms_iou,
              .counts = call.counts,
              .boxes = call.boxes,
              .keys = call.keys,
              .overlaps = call.overlaps},
             stream);
    launch(detections_kernel, {.blocks_x = images, .threads = kSelectThreads, .stream = stream},
           call);
}

}  // namespace hpcai::kernels
