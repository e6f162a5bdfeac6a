// SPDX-License-Identifier: Apache-2.0
#include "elements.cuh"
#include "proposals.hpp"
#include "select.cuh"
#include "suppression.hpp"

namespace hpcai::kernels {
namespace {

/// The arguments and workspace of one call. Each class of an image except background has a list of
/// boxes. Boxes with equal scores are in the order of their index, class x regions + region.
struct Call {
    DetectionsShape shape;
    DetectionsArguments args;
    float* scores;         // (N R, K)
    std::uint64_t* keys;   // (N, K - 1, R)
    float* boxes;          // (N, K - 1, R, 4)
    std::int32_t* counts;  // (N, K - 1)
    unsigned long long* overlaps;
};

__global__ void scores_kernel(const Call call) {
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

__device__ ops::Box decode_proposal(const Call& call, std::int64_t row, int label) {
    const float* deltas = call.args.deltas + (row * call.shape.classes + label) * 4;
    return ops::decode({deltas[0], deltas[1], deltas[2], deltas[3]},
                       ops::box_of(call.args.proposals + row * 5), call.shape.coder);
}

/// Writes the boxes of a class, best first. blockIdx.x is the class minus 1, because background has
/// no list; blockIdx.y is the image.
__global__ void __launch_bounds__(kSelectThreads, 1) class_boxes_kernel(const Call call) {
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
__global__ void __launch_bounds__(kSelectThreads, 1) write_kernel(const Call call) {
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

Call lay_out(const DetectionsShape& shape, Scratch& workspace) {
    constexpr int kMaxClasses = 1 << 12;  // indices of boxes fit into 31 bits
    if (shape.images < 1 || shape.classes < 2 || shape.classes > kMaxClasses ||
        shape.images > 65535 / (shape.classes - 1) || shape.regions < 1 ||
        shape.regions > kMaxSorted || shape.limit < 1 || shape.limit > kMaxSorted) {
        fail("detections: the sizes are outside the limits of DetectionsShape");
    }
    const std::int64_t lists = std::int64_t{shape.images} * (shape.classes - 1);
    const std::int64_t boxes = lists * shape.regions;
    Call call{.shape = shape};
    call.scores = workspace.take<float>(std::int64_t{shape.images} * shape.regions * shape.classes);
    call.keys = workspace.take<std::uint64_t>(boxes);
    call.boxes = workspace.take<float>(boxes * 4);
    call.counts = workspace.take<std::int32_t>(lists);
    call.overlaps = workspace.take<unsigned long long>(boxes * divide_up(shape.regions, 64));
    return call;
}

}  // namespace

std::size_t detections_workspace_bytes(const DetectionsShape& shape) {
    Scratch counted;
    lay_out(shape, counted);
    return counted.bytes();
}

void detections(const DetectionsShape& shape, const DetectionsArguments& arguments, Stream stream) {
    Scratch workspace(arguments.workspace);
    Call call = lay_out(shape, workspace);
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
    launch(write_kernel, {.blocks_x = images, .threads = kSelectThreads, .stream = stream}, call);
}

}  // namespace hpcai::kernels
