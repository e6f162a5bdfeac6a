// SPDX-License-Identifier: Apache-2.0
#include <hpcai/ops/box_math.hpp>

#include "elements.cuh"
#include "reduce.cuh"
#include "region_losses.hpp"

namespace hpcai::kernels {
namespace {

constexpr int kThreads = 256, kWarps = kThreads / static_cast<int>(kWarp), kColumns = 9;

/// The class of a region; -1 if it is unused.
__device__ inline int label_of(const RoiLossShape& shape, const float* target) {
    const bool is_used = target[4] >= 0 && target[4] < static_cast<float>(shape.classes);
    return is_used ? static_cast<int>(target[4]) : -1;
}

/// The number of used regions of an image, at least 1.
__device__ double region_count(const RoiLossShape& shape, const float* targets) {
    double count = 0;
    for (int i = static_cast<int>(threadIdx.x); i < shape.samples; i += kThreads) {
        if (label_of(shape, targets + i * kColumns) >= 0) ++count;
    }
    count = reduce_block(count, 0.0, Sum{});
    return count < 1 ? 1 : count;
}

/// The logarithm of the sum of the exponentials of a row, in every lane of a warp.
__device__ double log_sum_exp(const RoiLossShape& shape, const float* logits) {
    const int lane = static_cast<int>(threadIdx.x % kWarp);
    double highest = -INFINITY, sum = 0;
    for (int k = lane; k < shape.classes; k += kWarp)
        highest = fmax(highest, static_cast<double>(logits[k]));
    highest = reduce_warp(highest, Maximum{});
    for (int k = lane; k < shape.classes; k += kWarp) sum += exp(logits[k] - highest);
    return highest + log(reduce_warp(sum, Sum{}));
}

/// One block for each image; each warp takes one region at a time.
__global__ void __launch_bounds__(kThreads)
    roi_loss_kernel(const RoiLossShape shape, const RoiLossArguments args) {
    const std::int64_t first = std::int64_t{blockIdx.x} * shape.samples;
    const int warp = static_cast<int>(threadIdx.x / kWarp);
    const bool is_first_lane = threadIdx.x % kWarp == 0;
    double classes = 0, boxes = 0;
    for (std::int64_t row = first + warp; row < first + shape.samples; row += kWarps) {
        const float* target = args.targets + row * kColumns;
        const int label = label_of(shape, target);
        if (label < 0) continue;
        const float* logits = args.logits + row * shape.classes;
        const double total = log_sum_exp(shape, logits);
        if (!is_first_lane) continue;
        classes += total - logits[label];
        const float* deltas = args.deltas + (row * shape.classes + label) * 4;
        for (int k = 0; label > 0 && k < 4; ++k) boxes += ops::smooth_l1(deltas[k] - target[5 + k]);
    }
    const double count = region_count(shape, args.targets + first * kColumns);
    classes = reduce_block(classes, 0.0, Sum{});
    boxes = reduce_block(boxes, 0.0, Sum{});
    if (threadIdx.x != 0) return;
    args.losses[2 * blockIdx.x] = static_cast<float>(classes / count);
    args.losses[2 * blockIdx.x + 1] = static_cast<float>(boxes / count);
}

/// blockIdx.y is the image; each warp of its blocks takes one region.
template <typename T>
__global__ void __launch_bounds__(kThreads)
    roi_loss_gradient_kernel(const RoiLossShape shape, const RoiLossArguments args) {
    const std::int64_t first = std::int64_t{blockIdx.y} * shape.samples;
    const double scale = *args.loss_scale / region_count(shape, args.targets + first * kColumns);
    const int index = static_cast<int>(blockIdx.x * kWarps + threadIdx.x / kWarp);
    if (index >= shape.samples) return;
    const int lane = static_cast<int>(threadIdx.x % kWarp), classes = shape.classes;
    const std::int64_t row = first + index;
    const float* target = args.targets + row * kColumns;
    const int label = label_of(shape, target);
    const float* logits = args.logits + row * classes;
    const double total = label >= 0 ? log_sum_exp(shape, logits) : 0;
    T* logit_gradients = static_cast<T*>(args.logit_gradients);
    for (int k = lane; logit_gradients != nullptr && k < classes; k += kWarp) {
        const double slope = label >= 0 ? exp(logits[k] - total) - (k == label ? 1 : 0) : 0;
        logit_gradients[row * classes + k] = from_float<T>(static_cast<float>(scale * slope));
    }
    T* delta_gradients = static_cast<T*>(args.delta_gradients);
    for (int k = lane; delta_gradients != nullptr && k < 4 * classes; k += kWarp) {
        const std::int64_t at = row * 4 * classes + k;
        const bool is_target = label > 0 && k / 4 == label;
        const double slope =
            is_target ? ops::smooth_l1_slope(args.deltas[at] - target[5 + k % 4]) : 0.0f;
        delta_gradients[at] = from_float<T>(static_cast<float>(scale * slope));
    }
}

void check(const RoiLossShape& shape) {
    if (shape.images < 1 || shape.images > 65535 || shape.samples < 1 || shape.classes < 1) {
        fail("roi_loss: the sizes are outside the limits of RoiLossShape");
    }
}

}  // namespace

void roi_loss(const RoiLossShape& shape, const RoiLossArguments& arguments, Stream stream) {
    check(shape);
    launch(roi_loss_kernel, {.blocks_x = shape.images, .threads = kThreads, .stream = stream},
           shape, arguments);
}

void roi_loss_gradient(const RoiLossShape& shape, const RoiLossArguments& arguments,
                       Stream stream) {
    check(shape);
    const Grid grid{.blocks_x = divide_up(shape.samples, kWarps),
                    .blocks_y = shape.images,
                    .threads = kThreads,
                    .stream = stream};
    with_type(arguments.dtype,
              [&]<typename T>() { launch(roi_loss_gradient_kernel<T>, grid, shape, arguments); });
}

}  // namespace hpcai::kernels
