// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include <hpcai/ops/box_math.hpp>

#include "numbers.hpp"

namespace hpcai::device::cpu {
namespace {

/// The highest logit of a row, and log(sum of exp(logit - highest)).
struct LogSum {
    double highest;
    double log_sum;
};

/// Writes the softmax of a row with the logits `logit(k)`.
LogSum write_softmax(std::int64_t classes, const auto& logit, float* softmax) {
    double highest = logit(0), sum = 0;
    for (std::int64_t k = 1; k < classes; ++k) highest = std::max<double>(highest, logit(k));
    for (std::int64_t k = 0; k < classes; ++k) {
        const double exponential = std::exp(logit(k) - highest);
        softmax[k] = static_cast<float>(exponential);
        sum += exponential;
    }
    for (std::int64_t k = 0; k < classes; ++k) softmax[k] = static_cast<float>(softmax[k] / sum);
    return {highest, std::log(sum)};
}

/// With F classes. Inputs: logits (N, F) f32, labels (N) s32. Output: softmax (N, F) f32. Saved:
/// the loss of each row (N) f32, 0 for padding rows (label -1). Gradient of the logits: (N, F) in
/// the compute type, multiplied by the loss scale; the workspace has it in f32.
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
        const auto [highest, log_sum] = write_softmax(
            classes_, [&](std::int64_t i) { return logits[i]; }, probabilities(row));
        double loss = 0;
        if (label(row) >= 0) {
            double logit_sum = 0;
            for (std::int64_t i = 0; i < classes_; ++i) logit_sum += logits[i] - highest;
            // -sum of target * log(softmax): the one-hot part of the target, then the uniform part
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

/// Inputs: logits (N, H, W, K classes) in the compute type, G boxes (N, G, 5) f32. Output: softmax
/// (N, H W, K) f32. Saved: the images' losses (N) f32. Workspace: the cells' losses (N, H W) f32.
class CellCrossEntropyKernel final : public OperationKernel<ops::CellCrossEntropy, Context> {
public:
    using OperationKernel::OperationKernel;

    KernelMemory memory() const override {
        return {.saved_bytes = static_cast<std::size_t>(images_) * sizeof(float),
                .workspace_bytes = static_cast<std::size_t>(images_ * cells_) * sizeof(float)};
    }

private:
    void forward() override {
#pragma omp parallel for schedule(static)
        for (std::int64_t index = 0; index < images_ * cells_; ++index) forward(index);
        average();
    }
    void input_gradient() override {
#pragma omp parallel for schedule(static)
        for (std::int64_t index = 0; index < images_ * cells_; ++index) backward(index);
    }

    /// A cell of the batch with its target class and weight.
    struct Cell {
        std::int64_t image;
        std::int64_t pixel;  // of the logits: y * width + x
        int label;
        double weight;
    };
    Cell cell(std::int64_t index) const {
        const std::int64_t image = index / cells_, pixel = index % cells_;
        const std::int64_t rows = op_.boxes[1];
        const float* boxes = input(1) + image * rows * 5;
        const int label = ops::cell_class({boxes, rows, static_cast<int>(classes_)}, op_.stride,
                                          pixel / op_.input[2], pixel % op_.input[2]);
        return {image, pixel, label, label == 0 ? op_.background_weight : 1};
    }
    float* probabilities(std::int64_t index) const {
        return output() + index * classes_;
    }

    void forward(std::int64_t index) const {
        const Cell at = cell(index);
        const auto logit = [&](std::int64_t k) {
            return static_cast<double>(
                logits_.read(tensors_.inputs[0], logits_.index(at.image, at.pixel, k)));
        };
        const auto [highest, log_sum] = write_softmax(classes_, logit, probabilities(index));
        static_cast<float*>(tensors_.workspace)[index] =
            static_cast<float>(at.weight * (log_sum + highest - logit(at.label)));
    }

    void average() const {
        const float* losses = static_cast<const float*>(tensors_.workspace);
        for (std::int64_t image = 0; image < images_; ++image) {
            double sum = 0;
            for (std::int64_t i = 0; i < cells_; ++i) sum += losses[image * cells_ + i];
            static_cast<float*>(tensors_.saved)[image] =
                static_cast<float>(sum / static_cast<double>(cells_));
        }
    }

    void backward(std::int64_t index) const {
        const Cell at = cell(index);
        const double scale = *tensors_.loss_scale * at.weight / static_cast<double>(cells_);
        const float* const softmax = probabilities(index);
        for (std::int64_t k = 0; k < classes_; ++k) {
            const double slope = static_cast<double>(softmax[k]) - (k == at.label ? 1 : 0);
            logits_.write(tensors_.input_gradients[0], logits_.index(at.image, at.pixel, k),
                          static_cast<float>(scale * slope));
        }
    }

    const ImageAccessor logits_{context_.layouts, op_.input, options_.compute};
    const std::int64_t images_ = op_.input[0];
    const std::int64_t cells_ = op_.input[1] * op_.input[2], classes_ = op_.input[3];
};

}  // namespace

HPCAI_BUILD_KERNEL(SoftmaxCrossEntropy)
HPCAI_BUILD_KERNEL(CellCrossEntropy)

}  // namespace hpcai::device::cpu
