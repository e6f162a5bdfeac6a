// SPDX-License-Identifier: Apache-2.0
#include "elements.cuh"
#include "region_targets.hpp"
#include "select.cuh"

namespace hpcai::kernels {
namespace {

constexpr std::int32_t kBackground = -1, kNoCandidate = -2;

/// The inputs and matches of one image.
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
