// SPDX-License-Identifier: Apache-2.0
#include <hpcai/ops/box_math.hpp>

#include "elements.cuh"
#include "reduce.cuh"
#include "region_losses.hpp"

namespace hpcai::kernels {
namespace {

constexpr int kThreads = 256, kWarps = kThreads / static_cast<int>(kWarp);
constexpr int kRpnColumns = 6, kRoiColumns = 9;  // of targets

__device__ inline bool is_used(const RpnLossShape& shape, const float* row) {
    return row[0] >= 0 && row[0] < static_cast<float>(shape.grid.count);
}

/// The number of an image's samples for which is_used(index) is true, or 1 if there is none.
template <typename IsUsed>
__device__ double count_used(int samples, const IsUsed& is_used) {
    double count = 0;
    for (int i = static_cast<int>(threadIdx.x); i < samples; i += kThreads) {
        if (is_used(i)) ++count;
    }
    count = reduce_block(count, 0.0, Sum{});
    return count < 1 ? 1 : count;
}

__device__ double anchor_count(const RpnLossShape& shape, const float* targets) {
    return count_used(shape.samples,
                      [&](int i) { return is_used(shape, targets + i * kRpnColumns); });
}

template <typename T>
__device__ double logit_of(const RpnLossShape& shape, const RpnOutputs& rpn, int image,
                           int anchor) {
    const void* logits = rpn.logits[shape.grid.level_of(anchor)];
    const std::int64_t at = anchor_index(shape.grid, image, anchor, 1, rpn.logit_stride);
    return to_float(static_cast<const T*>(logits)[at]);
}

/// One block for each image.
template <typename T>
__global__ void __launch_bounds__(kThreads)
    rpn_loss_kernel(const __grid_constant__ RpnLossShape shape,
                    const __grid_constant__ RpnLossArguments args) {
    const int image = static_cast<int>(blockIdx.x);
    const float* targets = args.targets + std::int64_t{image} * shape.samples * kRpnColumns;
    double objectness = 0, box_loss = 0;
    for (int i = static_cast<int>(threadIdx.x); i < shape.samples; i += kThreads) {
        const float* row = targets + i * kRpnColumns;
        if (!is_used(shape, row)) continue;
        const int anchor = static_cast<int>(row[0]);
        // log(1 + exp(x)) - label x, without overflow
        const double logit = logit_of<T>(shape, args.rpn, image, anchor);
        objectness += fmax(logit, 0.0) - row[1] * logit + log1p(exp(-fabs(logit)));
        if (row[1] == 0) continue;
        const T* deltas = static_cast<const T*>(args.rpn.deltas[shape.grid.level_of(anchor)]) +
                          anchor_index(shape.grid, image, anchor, 4, args.rpn.delta_stride);
        for (int k = 0; k < 4; ++k) box_loss += ops::smooth_l1(to_float(deltas[k]) - row[2 + k]);
    }
    const double count = anchor_count(shape, targets);
    objectness = reduce_block(objectness, 0.0, Sum{});
    box_loss = reduce_block(box_loss, 0.0, Sum{});
    if (threadIdx.x != 0) return;
    args.losses[2 * image] = static_cast<float>(objectness / count);
    args.losses[2 * image + 1] = static_cast<float>(box_loss / count);
}

/// blockIdx.y counts the tensors: the logits of all levels, then the deltas of all levels.
template <typename T>
__global__ void clear_kernel(const __grid_constant__ RpnLossShape shape,
                             const __grid_constant__ RpnLossGradientArguments args) {
    const int levels = shape.grid.levels, tensor = static_cast<int>(blockIdx.y);
    const int level = tensor % levels;
    const bool is_logits = tensor < levels;
    T* to = static_cast<T*>(is_logits ? args.logits[level] : args.deltas[level]);
    if (to == nullptr) return;
    const int stride = is_logits ? args.rpn.logit_stride : args.rpn.delta_stride;
    const std::int64_t count = std::int64_t{shape.images} * shape.grid.level[level].height *
                               shape.grid.level[level].width * stride;
    const std::int64_t vectors = count / kLanes<T>;
    for (std::int64_t i = first_item(); i < vectors; i += item_stride()) {
        reinterpret_cast<uint4*>(to)[i] = uint4{0, 0, 0, 0};
    }
    for (std::int64_t i = vectors * kLanes<T> + first_item(); i < count; i += item_stride()) {
        to[i] = from_float<T>(0);
    }
}

/// One block for each image; each thread takes one sampled anchor at a time.
template <typename T>
__global__ void __launch_bounds__(kThreads)
    rpn_loss_gradient_kernel(const __grid_constant__ RpnLossShape shape,
                             const __grid_constant__ RpnLossGradientArguments args) {
    const int image = static_cast<int>(blockIdx.x);
    const float* targets = args.targets + std::int64_t{image} * shape.samples * kRpnColumns;
    const double scale = *args.loss_scale / anchor_count(shape, targets);
    for (int i = static_cast<int>(threadIdx.x); i < shape.samples; i += kThreads) {
        const float* row = targets + i * kRpnColumns;
        if (!is_used(shape, row)) continue;
        const int anchor = static_cast<int>(row[0]), level = shape.grid.level_of(anchor);
        const double logit = logit_of<T>(shape, args.rpn, image, anchor);
        const double slope = 1 / (1 + exp(-logit)) - row[1];
        if (args.logits[level] != nullptr) {
            const std::int64_t at =
                anchor_index(shape.grid, image, anchor, 1, args.rpn.logit_stride);
            static_cast<T*>(args.logits[level])[at] =
                from_float<T>(static_cast<float>(scale * slope));
        }
        if (row[1] == 0 || args.deltas[level] == nullptr) continue;
        const std::int64_t at = anchor_index(shape.grid, image, anchor, 4, args.rpn.delta_stride);
        for (int k = 0; k < 4; ++k) {
            const T delta = static_cast<const T*>(args.rpn.deltas[level])[at + k];
            const double box_slope = ops::smooth_l1_slope(to_float(delta) - row[2 + k]);
            static_cast<T*>(args.deltas[level])[at + k] =
                from_float<T>(static_cast<float>(scale * box_slope));
        }
    }
}

Grid block_per_image(const RpnLossShape& shape, Stream stream) {
    if (shape.images < 1 || shape.samples < 1) fail("rpn_loss has no images or no samples");
    return {.blocks_x = shape.images, .threads = kThreads, .stream = stream};
}

/// The class of a region; -1 if it is unused.
__device__ inline int label_of(const RoiLossShape& shape, const float* target) {
    const bool is_used = target[4] >= 0 && target[4] < static_cast<float>(shape.classes);
    return is_used ? static_cast<int>(target[4]) : -1;
}

__device__ double region_count(const RoiLossShape& shape, const float* targets) {
    return count_used(shape.samples,
                      [&](int i) { return label_of(shape, targets + i * kRoiColumns) >= 0; });
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
    double class_loss = 0, box_loss = 0;
    for (std::int64_t row = first + warp; row < first + shape.samples; row += kWarps) {
        const float* target = args.targets + row * kRoiColumns;
        const int label = label_of(shape, target);
        if (label < 0) continue;
        const float* logits = args.logits + row * shape.classes;
        const double total = log_sum_exp(shape, logits);
        if (!is_first_lane) continue;
        class_loss += total - logits[label];
        const float* deltas = args.deltas + (row * shape.classes + label) * 4;
        for (int k = 0; label > 0 && k < 4; ++k)
            box_loss += ops::smooth_l1(deltas[k] - target[5 + k]);
    }
    const double count = region_count(shape, args.targets + first * kRoiColumns);
    class_loss = reduce_block(class_loss, 0.0, Sum{});
    box_loss = reduce_block(box_loss, 0.0, Sum{});
    if (threadIdx.x != 0) return;
    args.losses[2 * blockIdx.x] = static_cast<float>(class_loss / count);
    args.losses[2 * blockIdx.x + 1] = static_cast<float>(box_loss / count);
}

/// blockIdx.y is the image; each warp of its blocks takes one region.
template <typename T>
__global__ void __launch_bounds__(kThreads)
    roi_loss_gradient_kernel(const RoiLossShape shape, const RoiLossArguments args) {
    const std::int64_t first = std::int64_t{blockIdx.y} * shape.samples;
    const double scale = *args.loss_scale / region_count(shape, args.targets + first * kRoiColumns);
    const int index = static_cast<int>(blockIdx.x * kWarps + threadIdx.x / kWarp);
    if (index >= shape.samples) return;
    const int lane = static_cast<int>(threadIdx.x % kWarp), classes = shape.classes;
    const std::int64_t row = first + index;
    const float* target = args.targets + row * kRoiColumns;
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

void rpn_loss(const RpnLossShape& shape, const RpnLossArguments& arguments, Stream stream) {
    with_type(arguments.rpn.dtype, [&]<typename T>() {
        launch(rpn_loss_kernel<T>, block_per_image(shape, stream), shape, arguments);
    });
}

void rpn_loss_gradient(const RpnLossShape& shape, const RpnLossGradientArguments& arguments,
                       Stream stream) {
    const AnchorGrid& grid = shape.grid;
    Grid over_tensors =
        grid_over(std::int64_t{shape.images} * grid.count_of(0) / grid.per_cell, stream);
    over_tensors.blocks_y = 2 * grid.levels;
    with_type(arguments.rpn.dtype, [&]<typename T>() {
        launch(clear_kernel<T>, over_tensors, shape, arguments);
        launch(rpn_loss_gradient_kernel<T>, block_per_image(shape, stream), shape, arguments);
    });
}

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
