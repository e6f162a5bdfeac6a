// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "context.hpp"

namespace hpcai::device::cpu {
namespace {

/// Inputs: logits (N, F) f32, labels (N) s32. Output: softmax (N, F) f32. Saved: the loss of each
/// row (N) f32, 0 for padding. Gradient of the logits: (N, F) in the compute type, the row losses'
/// gradients times the loss scale; the workspace has it in f32.
class SoftmaxCrossEntropyKernel final : public OperationKernel<ops::SoftmaxCrossEntropy, Context> {
public:
    using OperationKernel::OperationKernel;

    KernelMemory memory() const override {
        return {.saved_bytes = static_cast<std::size_t>(rows_) * sizeof(float),
                .workspace_bytes = static_cast<std::size_t>(rows_ * classes_) * sizeof(float)};
    }

private:
    void forward() override {
#pragma omp parallel for schedule(static)
        for (std::int64_t row = 0; row < rows_; ++row) forward(row);
    }
    void input_gradient() override {
#pragma omp parallel for schedule(static)
        for (std::int64_t row = 0; row < rows_; ++row) backward(row);
    }

    std::int32_t label(std::int64_t row) const {
        return input<std::int32_t>(1)[row];
    }
    float* probabilities(std::int64_t row) const {
        return output() + row * classes_;
    }

    void forward(std::int64_t row) const {
        const float* logits = input(0) + row * classes_;
        float* softmax = probabilities(row);
        const double highest = *std::max_element(logits, logits + classes_);
        double sum = 0, logit_sum = 0;
        for (std::int64_t i = 0; i < classes_; ++i) {
            const double shifted = logits[i] - highest;
            const double exponential = std::exp(shifted);
            softmax[i] = static_cast<float>(exponential);
            sum += exponential;
            logit_sum += shifted;
        }
        for (std::int64_t i = 0; i < classes_; ++i) {
            softmax[i] = static_cast<float>(softmax[i] / sum);
        }
        double loss = 0;
        if (label(row) >= 0) {
            // -sum of target x (logit - log sum exp), with the two terms of the target separate
            const double log_sum = std::log(sum);
            loss = one_hot_weight_ * (log_sum - (logits[label(row)] - highest)) +
                   uniform_weight_ * (static_cast<double>(classes_) * log_sum - logit_sum);
        }
        static_cast<float*>(tensors_.saved)[row] = static_cast<float>(loss);
    }

    void backward(std::int64_t row) const {
        const float* softmax = probabilities(row);
        float* gradient = static_cast<float*>(tensors_.workspace) + row * classes_;
        const float scale = label(row) >= 0 ? *tensors_.loss_scale : 0.0f;
        for (std::int64_t i = 0; i < classes_; ++i) {
            gradient[i] = scale * (softmax[i] - static_cast<float>(uniform_weight_));
        }
        if (label(row) >= 0) gradient[label(row)] -= scale * static_cast<float>(one_hot_weight_);
        const Tile tile{classes_, 1, 1, options_.compute};
        loops_.store_floats(
            tile, gradient,
            static_cast<std::byte*>(tensors_.input_gradients[0]) +
                static_cast<std::size_t>(row * classes_) * size_of(options_.compute));
    }

    const SimdKernels& loops_ = *context_.loops;
    const std::int64_t rows_ = op_.input[0], classes_ = op_.input[1];
    const double uniform_weight_ = op_.label_smoothing / static_cast<double>(classes_);
    const double one_hot_weight_ = 1 - op_.label_smoothing;
};

}  // namespace

KernelPtr build(const ops::SoftmaxCrossEntropy& op, const KernelOptions& options,
                const Context& context) {
    return std::make_unique<SoftmaxCrossEntropyKernel>(op, options, context);
}

}  // namespace hpcai::device::cpu
