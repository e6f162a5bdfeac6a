// SPDX-License-Identifier: Apache-2.0
#include "cross_entropy.hpp"
#include "elements.cuh"
#include "reduce.cuh"

namespace hpcai::kernels {
namespace {

constexpr unsigned kRowThreads = 256;

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
    for (std::int64_t i = threadIdx.x; i < classes; i += kRowThreads) {
        highest = Maximum{}(logits[i], highest);
    }
    highest = reduce_block(highest, -INFINITY, Maximum{});

    double sum = 0, logit_sum = 0;
    for (std::int64_t i = threadIdx.x; i < classes; i += kRowThreads) {
        const double shifted = static_cast<double>(logits[i]) - highest;
        const double power = exp(shifted);
        softmax[i] = static_cast<float>(power);
        sum += power;
        logit_sum += shifted;
    }
    sum = reduce_block(sum, 0.0, Sum{});
    logit_sum = reduce_block(logit_sum, 0.0, Sum{});
    for (std::int64_t i = threadIdx.x; i < classes; i += kRowThreads) {
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
    for (std::int64_t i = threadIdx.x; i < classes; i += kRowThreads) {
        const float target = i == label ? target_at_label : target_off_label;
        const float value = loss_scale * (args.probabilities[first + i] - target);
        gradient[i] = from_float<T>(label >= 0 ? value : 0.0f);
    }
}

__global__ void accumulate_kernel(const float* losses, std::int64_t rows, double* total) {
    double sum = 0;
    for (std::int64_t row = threadIdx.x; row < rows; row += kRowThreads) sum += losses[row];
    sum = reduce_block(sum, 0.0, Sum{});
    if (threadIdx.x == 0) *total += sum;
}

Target target_of(const SoftmaxShape& shape) {
    return {shape.label_smoothing / static_cast<double>(shape.classes), 1 - shape.label_smoothing};
}

Grid one_block_per(std::int64_t rows, Stream stream) {
    if (rows < 1 || rows > 0x7fffffff) fail("softmax: expected 1 to 2^31 - 1 rows");
    return {.blocks_x = rows, .threads = kRowThreads, .stream = stream};
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

}  // namespace hpcai::kernels
