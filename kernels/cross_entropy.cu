// SPDX-License-Identifier: Apache-2.0
#include <hpcai/ops/box_math.hpp>

#include "cross_entropy.hpp"
#include "elements.cuh"
#include "reduce.cuh"

namespace hpcai::kernels {
namespace {

constexpr unsigned kThreads = 256;

/// The two terms of the target distribution: s / F everywhere, plus 1 - s at the label.
struct Target {
    double spread, peak;
};

/// One block for each row. A thread reads only those elements of softmax that it wrote.
__global__ void softmax_kernel(SoftmaxArguments args, std::int64_t classes, Target target) {
    const std::int64_t row = blockIdx.x;
    const float* logits = args.logits + row * classes;
    float* softmax = args.probabilities + row * classes;
    const std::int32_t label = args.labels[row];

    float highest = -INFINITY;
    for (std::int64_t i = threadIdx.x; i < classes; i += kThreads) {
        highest = Maximum{}(logits[i], highest);
    }
    highest = reduce_block(highest, -INFINITY, Maximum{});

    double sum = 0, logit_sum = 0;
    for (std::int64_t i = threadIdx.x; i < classes; i += kThreads) {
        const double shifted = static_cast<double>(logits[i]) - highest;
        const double power = exp(shifted);
        softmax[i] = static_cast<float>(power);
        sum += power;
        logit_sum += shifted;
    }
    sum = reduce_block(sum, 0.0, Sum{});
    logit_sum = reduce_block(logit_sum, 0.0, Sum{});
    for (std::int64_t i = threadIdx.x; i < classes; i += kThreads) {
        softmax[i] = static_cast<float>(softmax[i] / sum);
    }
    if (threadIdx.x != 0) return;
    double loss = 0;
    if (label >= 0) {
        // -sum of target x (logit - log sum exp), with the two terms of the target separate
        const double log_sum = log(sum);
        loss = target.peak * (log_sum - (static_cast<double>(logits[label]) - highest)) +
               target.spread * (static_cast<double>(classes) * log_sum - logit_sum);
    }
    args.losses[row] = static_cast<float>(loss);
}

template <typename T>
__global__ void softmax_gradient_kernel(SoftmaxGradientArguments args, std::int64_t classes,
                                        float target_off_label, float target_at_label) {
    const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * classes;
    const std::int32_t label = args.labels[blockIdx.x];
    const float loss_scale = *args.loss_scale;
    T* gradient = static_cast<T*>(args.gradient) + first;
    for (std::int64_t i = threadIdx.x; i < classes; i += kThreads) {
        const float target = i == label ? target_at_label : target_off_label;
        const float value = loss_scale * (args.probabilities[first + i] - target);
        gradient[i] = from_float<T>(label >= 0 ? value : 0.0f);
    }
}

__global__ void accumulate_kernel(const float* losses, std::int64_t rows, double* total) {
    double sum = 0;
    for (std::int64_t row = threadIdx.x; row < rows; row += kThreads) sum += losses[row];
    sum = reduce_block(sum, 0.0, Sum{});
    if (threadIdx.x == 0) *total += sum;
}

Target target_of(const SoftmaxShape& shape) {
    return {shape.label_smoothing / static_cast<double>(shape.classes), 1 - shape.label_smoothing};
}

Grid one_block_per(std::int64_t rows, Stream stream) {
    if (rows < 1 || rows > 0x7fffffff) fail("softmax: expected 1 to 2^31 - 1 rows");
    return {.blocks_x = rows, .threads = kThreads, .stream = stream};
}

__device__ int label_of(const CellGrid& grid, const float* boxes, std::int64_t image,
                        std::int64_t cell) {
    return ops::cell_class({boxes + image * grid.boxes * 5, grid.boxes, grid.classes}, grid.stride,
                           cell / grid.width, cell % grid.width);
}

__device__ double weight_of(const CellGrid& grid, int label) {
    return label == 0 ? grid.background_weight : 1;
}

/// One block for each image; each thread computes one cell at a time.
template <typename T>
__global__ void __launch_bounds__(kThreads)
    cell_kernel(const CellGrid grid, const CellCrossEntropyArguments args) {
    const std::int64_t image = blockIdx.x, cells = grid.height * grid.width;
    double total = 0;
    for (std::int64_t cell = threadIdx.x; cell < cells; cell += kThreads) {
        const std::int64_t index = image * cells + cell;
        const T* logits = static_cast<const T*>(args.logits) + index * grid.padded_classes;
        float* softmax = args.probabilities + index * grid.classes;
        double highest = to_float(logits[0]), sum = 0;
        for (int k = 1; k < grid.classes; ++k) {
            highest = Maximum{}(static_cast<double>(to_float(logits[k])), highest);
        }
        for (int k = 0; k < grid.classes; ++k) {
            const double power = exp(to_float(logits[k]) - highest);
            softmax[k] = static_cast<float>(power);
            sum += power;
        }
        for (int k = 0; k < grid.classes; ++k) softmax[k] = static_cast<float>(softmax[k] / sum);
        const int label = label_of(grid, args.boxes, image, cell);
        total += weight_of(grid, label) * (log(sum) + highest - to_float(logits[label]));
    }
    total = reduce_block(total, 0.0, Sum{});
    if (threadIdx.x == 0)
        args.losses[image] = static_cast<float>(total / static_cast<double>(cells));
}

template <typename T>
__global__ void cell_gradient_kernel(const CellGrid grid,
                                     const CellCrossEntropyGradientArguments args) {
    const std::int64_t cells = grid.height * grid.width;
    const double mean_scale = *args.loss_scale / static_cast<double>(cells);
    for (std::int64_t index = first_item(); index < grid.images * cells; index += item_stride()) {
        const int label = label_of(grid, args.boxes, index / cells, index % cells);
        const double scale = mean_scale * weight_of(grid, label);
        const float* softmax = args.probabilities + index * grid.classes;
        T* gradient = static_cast<T*>(args.gradient) + index * grid.padded_classes;
        for (int k = 0; k < grid.padded_classes; ++k) {
            const double slope =
                k < grid.classes ? static_cast<double>(softmax[k]) - (k == label ? 1 : 0) : 0;
            gradient[k] = from_float<T>(static_cast<float>(scale * slope));
        }
    }
}

void check(const CellGrid& grid) {
    if (grid.images < 1 || grid.images > 0x7fffffff || grid.height < 1 || grid.width < 1 ||
        grid.classes < 1) {
        fail("cell_cross_entropy: the sizes are outside the limits of CellGrid");
    }
}

}  // namespace

void softmax_cross_entropy(const SoftmaxShape& shape, const SoftmaxArguments& arguments,
                           Stream stream) {
    launch(softmax_kernel, one_block_per(shape.rows, stream), arguments, shape.classes,
           target_of(shape));
}

void softmax_cross_entropy_gradient(const SoftmaxShape& shape,
                                    const SoftmaxGradientArguments& arguments, Stream stream) {
    const Target target = target_of(shape);
    with_type(arguments.dtype, [&]<typename T>() {
        launch(softmax_gradient_kernel<T>, one_block_per(shape.rows, stream), arguments,
               shape.classes, static_cast<float>(target.spread),
               static_cast<float>(target.spread + target.peak));
    });
}

void accumulate_loss(const float* losses, std::int64_t rows, double* total, Stream stream) {
    launch(accumulate_kernel, one_block_per(1, stream), losses, rows, total);
}

void cell_cross_entropy(const CellGrid& grid, const CellCrossEntropyArguments& arguments,
                        Stream stream) {
    check(grid);
    with_type(grid.dtype, [&]<typename T>() {
        launch(cell_kernel<T>, {.blocks_x = grid.images, .threads = kThreads, .stream = stream},
               grid, arguments);
    });
}

void cell_cross_entropy_gradient(const CellGrid& grid,
                                 const CellCrossEntropyGradientArguments& arguments,
                                 Stream stream) {
    check(grid);
    with_type(grid.dtype, [&]<typename T>() {
        launch(cell_gradient_kernel<T>, grid_over(grid.images * grid.height * grid.width, stream),
               grid, arguments);
    });
}

}  // namespace hpcai::kernels
