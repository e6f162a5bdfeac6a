// SPDX-License-Identifier: Apache-2.0
#include "elements.cuh"
#include "region_targets.hpp"
#include "select.cuh"

namespace hpcai::kernels {
namespace {

constexpr int kMatchThreads = 256;
constexpr int kTile = 64;  // boxes of an image in shared memory

enum Kind : std::uint8_t { neither, positive, negative };

/// The arguments and workspace of a call of anchor_targets(). A chunk has up to kChunk anchors.
struct Call {
    AnchorTargetsShape shape;
    AnchorTargetsArguments args;
    int chunks;
    std::uint32_t* highest;     // (N, G): bits of the highest IoU of any anchor with the box
    std::uint8_t* kinds;        // (N, anchors)
    std::uint64_t* chunk_keys;  // (N, 2, chunks, S): keys of positive and of negative anchors

    __device__ const float* boxes(int image) const {
        return args.boxes + std::int64_t{image} * shape.boxes * 5;
    }
};

__global__ void clear_kernel(const __grid_constant__ Call call) {
    const std::int64_t count = std::int64_t{call.shape.images} * call.shape.boxes;
    for (std::int64_t i = first_item(); i < count; i += item_stride()) call.highest[i] = 0;
}

/// Computes Call::highest; blockIdx.y is the image. The bits of positive floats have the order of
/// the floats, so atomicMax() applies to them.
__global__ void __launch_bounds__(kMatchThreads) highest_kernel(const __grid_constant__ Call call) {
    __shared__ float4 boxes[kTile];
    __shared__ bool is_used[kTile];
    __shared__ std::uint32_t highest[kTile];
    const int image = static_cast<int>(blockIdx.y), thread = static_cast<int>(threadIdx.x);
    const int stride = static_cast<int>(item_stride());
    for (int first = 0; first < call.shape.boxes; first += kTile) {
        const int remaining = call.shape.boxes - first;
        const int count = remaining < kTile ? remaining : kTile;
        if (thread < count) {
            const float* row = call.boxes(image) + (first + thread) * 5;
            boxes[thread] = {row[0], row[1], row[2], row[3]};
            is_used[thread] = ops::is_box(row);
            highest[thread] = 0;
        }
        __syncthreads();
        for (int i = static_cast<int>(first_item()); i < call.shape.grid.count; i += stride) {
            const ops::Box anchor = call.shape.grid.box(i);
            for (int g = 0; g < count; ++g) {
                const float4 box = boxes[g];
                const float iou = ops::iou_of({box.x, box.y, box.z, box.w}, anchor);
                if (!is_used[g] || !(iou > 0)) continue;
                const auto bits = __float_as_uint(iou);
                if (bits > highest[g]) atomicMax(&highest[g], bits);
            }
        }
        __syncthreads();
        if (thread < count && highest[thread] != 0) {
            atomicMax(&call.highest[std::int64_t{image} * call.shape.boxes + first + thread],
                      highest[thread]);
        }
        __syncthreads();
    }
}

/// Classifies the anchors; blockIdx.y is the image.
__global__ void __launch_bounds__(kMatchThreads) kinds_kernel(const __grid_constant__ Call call) {
    const int image = static_cast<int>(blockIdx.y), stride = static_cast<int>(item_stride());
    const float* boxes = call.boxes(image);
    const std::uint32_t* highest = call.highest + std::int64_t{image} * call.shape.boxes;
    std::uint8_t* kinds = call.kinds + std::int64_t{image} * call.shape.grid.count;
    for (int i = static_cast<int>(first_item()); i < call.shape.grid.count; i += stride) {
        const ops::Box anchor = call.shape.grid.box(i);
        float best = 0;
        bool is_highest = false;
        for (int g = 0; g < call.shape.boxes; ++g) {
            if (!ops::is_box(boxes + g * 5)) continue;
            const float iou = ops::iou_of(ops::box_of(boxes + g * 5), anchor);
            if (!(iou > 0)) continue;
            best = iou > best ? iou : best;
            is_highest = is_highest || __float_as_uint(iou) == highest[g];
        }
        kinds[i] = is_highest || best >= call.shape.foreground_iou ? positive
                   : best < call.shape.background_iou              ? negative
                                                                   : neither;
    }
}

/// Draws samples of a chunk. blockIdx.x counts the chunks twice: for positive anchors, then for
/// negative ones. blockIdx.y is the image.
__global__ void __launch_bounds__(kSelectThreads, 1)
    draw_chunk_kernel(const __grid_constant__ Call call) {
    const int image = static_cast<int>(blockIdx.y), block = static_cast<int>(blockIdx.x);
    const bool is_positive = block < call.chunks;
    const int first = (is_positive ? block : block - call.chunks) * kChunk;
    const int remaining = call.shape.grid.count - first;
    const int count = remaining < kChunk ? remaining : kChunk;
    const std::uint8_t* kinds = call.kinds + std::int64_t{image} * call.shape.grid.count + first;
    const Kind wanted = is_positive ? positive : negative;
    const std::int32_t image_key = call.args.keys[image];
    const auto key_at = [&](int i) {
        return kinds[i] == wanted ? draw_key(image_key, 0, static_cast<std::uint32_t>(first + i))
                                  : kNoKey;
    };
    const int samples = call.shape.samples;
    std::uint64_t* drawn =
        call.chunk_keys + (std::int64_t{image} * 2 * call.chunks + block) * samples;
    const int taken =
        select_smallest(key_at, count, is_positive ? call.shape.max_positive : samples,
                        [&](int slot, std::uint64_t key) { drawn[slot] = key; });
    for (int i = taken + static_cast<int>(threadIdx.x); i < samples; i += kSelectThreads) {
        drawn[i] = kNoKey;
    }
}

/// The deltas from an anchor to the box with which it has the highest IoU, or to the first box if
/// it overlaps none. An anchor without overlap is positive only if `foreground_iou` is 0.
__device__ ops::BoxDeltas target_of(const Call& call, int image, const ops::Box& anchor) {
    const float* boxes = call.boxes(image);
    const int match = best_box(boxes, call.shape.boxes, anchor).index;
    return ops::encode(ops::box_of(boxes + (match < 0 ? 0 : match) * 5), anchor, {});
}

/// Draws the samples of an image from the samples of its chunks and writes their targets.
__global__ void __launch_bounds__(kSelectThreads, 1)
    anchor_targets_kernel(const __grid_constant__ Call call) {
    __shared__ std::uint64_t drawn[kMaxSorted];
    const int image = static_cast<int>(blockIdx.x), samples = call.shape.samples;
    const int candidates = call.chunks * samples;
    float* targets = call.args.targets + std::int64_t{image} * samples * 6;
    int written = 0;
    for (int part = 0; part < 2; ++part) {  // positive, negative
        const bool is_positive = part == 0;
        const std::uint64_t* keys = call.chunk_keys + (std::int64_t{image} * 2 + part) * candidates;
        const int count =
            select_smallest([&](int i) { return keys[i]; }, candidates,
                            is_positive ? call.shape.max_positive : samples - written,
                            [&](int slot, std::uint64_t key) { drawn[slot] = index_of(key); });
        sort(drawn, count);
        for (int i = static_cast<int>(threadIdx.x); i < count; i += kSelectThreads) {
            const auto anchor = static_cast<int>(drawn[i]);
            ops::BoxDeltas target;
            if (is_positive) target = target_of(call, image, call.shape.grid.box(anchor));
            float* row = targets + (written + i) * 6;
            row[0] = static_cast<float>(anchor);
            row[1] = is_positive ? 1.0f : 0.0f;
            row[2] = target.x;
            row[3] = target.y;
            row[4] = target.w;
            row[5] = target.h;
        }
        __syncthreads();
        written += count;
    }
    for (int i = written * 6 + static_cast<int>(threadIdx.x); i < samples * 6;
         i += kSelectThreads) {
        targets[i] = i % 6 == 0 ? -1.0f : 0.0f;
    }
}

Call lay_out(const AnchorTargetsShape& shape, Scratch& workspace) {
    if (shape.images < 1 || shape.images > 65535 || shape.boxes < 1 || shape.samples < 1 ||
        shape.samples > kMaxSorted || shape.max_positive < 0 ||
        shape.max_positive > shape.samples) {
        fail("anchor_targets: the sizes are outside the limits of AnchorTargetsShape");
    }
    const std::int64_t images = shape.images;
    Call call{.shape = shape};
    call.chunks = static_cast<int>(divide_up(shape.grid.count, kChunk));
    call.highest = workspace.take<std::uint32_t>(images * shape.boxes);
    call.kinds = workspace.take<std::uint8_t>(images * shape.grid.count);
    call.chunk_keys = workspace.take<std::uint64_t>(images * 2 * call.chunks * shape.samples);
    return call;
}

constexpr std::int32_t kBackground = -1, kNoCandidate = -2;

/// The arrays of one image.
struct Image {
    const float* proposals;
    const float* boxes;
    std::int32_t* matches;  // of all candidates: index of a box, kBackground or kNoCandidate
    float* targets;
};

__device__ const float* candidate_row(const RoiTargetsShape& shape, const Image& image,
                                      int candidate) {
    return candidate < shape.proposals ? image.proposals + candidate * 5
                                       : image.boxes + (candidate - shape.proposals) * 5;
}

__device__ std::int32_t match(const RoiTargetsShape& shape, const Image& image, int candidate) {
    const float* row = candidate_row(shape, image, candidate);
    if (candidate < shape.proposals ? !(row[4] >= 0) : !ops::is_box(row)) return kNoCandidate;
    const BestBox best = best_box(image.boxes, shape.boxes, ops::box_of(row));
    return best.iou >= shape.foreground_iou ? best.index : kBackground;
}

__device__ void write(const RoiTargetsShape& shape, const Image& image, int candidate, float* to) {
    const float* row = candidate_row(shape, image, candidate);
    const std::int32_t matched = image.matches[candidate];
    ops::BoxDeltas target;
    if (matched >= 0) {
        target = ops::encode(ops::box_of(image.boxes + matched * 5), ops::box_of(row), shape.coder);
    }
    for (int i = 0; i < 4; ++i) to[i] = row[i];
    to[4] = matched >= 0 ? image.boxes[matched * 5 + 4] : 0.0f;
    to[5] = target.x;
    to[6] = target.y;
    to[7] = target.w;
    to[8] = target.h;
}

/// One block for each image.
__global__ void __launch_bounds__(kSelectThreads, 1)
    roi_targets_kernel(const RoiTargetsShape shape, const RoiTargetsArguments args,
                       std::int32_t* matches) {
    __shared__ std::uint64_t drawn[kMaxSorted];
    const std::int64_t index = blockIdx.x;
    const int candidates = shape.proposals + shape.boxes, samples = shape.samples;
    const Image image{args.proposals + index * shape.proposals * 5,
                      args.boxes + index * shape.boxes * 5, matches + index * candidates,
                      args.targets + index * samples * 9};
    const int thread = static_cast<int>(threadIdx.x);
    for (int i = thread; i < candidates; i += kSelectThreads) {
        image.matches[i] = match(shape, image, i);
    }
    __syncthreads();
    const std::int32_t image_key = args.keys[index];
    int written = 0;
    for (int part = 0; part < 2; ++part) {
        const bool foreground = part == 0;
        const auto key_at = [&](int i) {
            const std::int32_t matched = image.matches[i];
            return (foreground ? matched >= 0 : matched == kBackground)
                       ? draw_key(image_key, 1, static_cast<std::uint32_t>(i))
                       : kNoKey;
        };
        const int count = select_smallest(
            key_at, candidates, foreground ? shape.max_foreground : samples - written,
            [&](int slot, std::uint64_t key) { drawn[slot] = index_of(key); });
        sort(drawn, count);
        for (int i = thread; i < count; i += kSelectThreads) {
            write(shape, image, static_cast<int>(drawn[i]), image.targets + (written + i) * 9);
        }
        __syncthreads();
        written += count;
    }
    for (int i = written * 9 + thread; i < samples * 9; i += kSelectThreads) {
        image.targets[i] = i % 9 == 4 ? -1.0f : 0.0f;
    }
}

std::int32_t* lay_out(const RoiTargetsShape& shape, Scratch& workspace) {
    if (shape.images < 1 || shape.proposals < 0 || shape.boxes < 0 || shape.samples < 1 ||
        shape.samples > kMaxSorted || shape.max_foreground < 0 ||
        shape.max_foreground > shape.samples) {
        fail("roi_targets: the sizes are outside the limits of RoiTargetsShape");
    }
    return workspace.take<std::int32_t>(std::int64_t{shape.images} *
                                        (shape.proposals + shape.boxes));
}

}  // namespace

std::size_t anchor_targets_workspace_bytes(const AnchorTargetsShape& shape) {
    Scratch counted;
    lay_out(shape, counted);
    return counted.bytes();
}

void anchor_targets(const AnchorTargetsShape& shape, const AnchorTargetsArguments& arguments,
                    Stream stream) {
    Scratch workspace(arguments.workspace);
    Call call = lay_out(shape, workspace);
    call.args = arguments;
    const std::int64_t images = shape.images;
    const Grid over_anchors{.blocks_x = divide_up(shape.grid.count, 4 * kMatchThreads),
                            .blocks_y = images,
                            .threads = kMatchThreads,
                            .stream = stream};
    launch(clear_kernel, grid_over(images * shape.boxes, stream), call);
    launch(highest_kernel, over_anchors, call);
    launch(kinds_kernel, over_anchors, call);
    launch(draw_chunk_kernel,
           {.blocks_x = 2 * call.chunks,
            .blocks_y = images,
            .threads = kSelectThreads,
            .stream = stream},
           call);
    launch(anchor_targets_kernel, {.blocks_x = images, .threads = kSelectThreads, .stream = stream},
           call);
}

std::size_t roi_targets_workspace_bytes(const RoiTargetsShape& shape) {
    Scratch counted;
    lay_out(shape, counted);
    return counted.bytes();
}

void roi_targets(const RoiTargetsShape& shape, const RoiTargetsArguments& arguments,
                 Stream stream) {
    Scratch workspace(arguments.workspace);
    std::int32_t* matches = lay_out(shape, workspace);
    launch(roi_targets_kernel,
           {.blocks_x = shape.images, .threads = kSelectThreads, .stream = stream}, shape,
           arguments, matches);
}

}  // namespace hpcai::kernels
