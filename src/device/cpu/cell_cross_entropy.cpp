// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include <hpcai/ops/cell_class.hpp>

#include "numbers.hpp"

namespace hpcai::device::cpu {
namespace {

/// Inputs: logits (N, H, W, K) in the compute type, boxes (N, G, 5) f32. Output: softmax
/// (N, H W, K) f32. Saved: the images' losses (N) f32. Scratch: the cells' losses (N, H W) f32.
class CellCrossEntropyKernel final : public Kernel {
public:
    CellCrossEntropyKernel(const ops::CellCrossEntropy& op, const KernelOptions& options,
                           const Context& context)
        : op_(op),
          options_(options),
          numbers_(context.layouts, op.input, options.compute),
          cells_(op.input[1] * op.input[2]),
          classes_(op.input[3]) {}

    KernelMemory memory() const override {
        return {static_cast<std::size_t>(op_.input[0]) * sizeof(float), 0,
                static_cast<std::size_t>(op_.input[0] * cells_) * sizeof(float)};
    }
    bool backward_reads_inputs() const override { return true; }  // the boxes
    bool backward_reads_output() const override { return true; }
    std::vector<ops::Pass> passes() const override {
        if (options_.mode == Mode::inference) return {ops::Pass::forward};
        return {ops::Pass::forward, ops::Pass::input_gradient};
    }
    void bind(const KernelTensors& tensors) override { tensors_ = tensors; }

    void run(ops::Pass pass) override {
        const std::int64_t images = op_.input[0];
#pragma omp parallel for schedule(static)
        for (std::int64_t index = 0; index < images * cells_; ++index) {
            pass == ops::Pass::forward ? forward(index) : backward(index);
        }
        if (pass == ops::Pass::forward) average(images);
    }

private:
    /// A cell of the batch, and what it should say.
    struct Cell {
        std::int64_t image;
        std::int64_t pixel;
        int label;
        double weight;
    };
    Cell cell(std::int64_t index) const {
        const std::int64_t image = index / cells_, pixel = index % cells_;
        const std::int64_t rows = op_.boxes[1];
        const float* boxes = static_cast<const float*>(tensors_.inputs[1]) + image * rows * 5;
        const int label = ops::cell_class({boxes, rows, static_cast<int>(classes_)}, op_.stride,
                                          pixel / op_.input[2], pixel % op_.input[2]);
        return {image, pixel, label, label == 0 ? op_.background_weight : 1};
    }
    float* probabilities(std::int64_t index) const {
        return static_cast<float*>(tensors_.output) + index * classes_;
    }

    void forward(std::int64_t index) const {
        const Cell at = cell(index);
        const auto logit = [&](std::int64_t k) {
            return static_cast<double>(
                numbers_.read(tensors_.inputs[0], numbers_.index(at.image, at.pixel, k)));
        };
        double highest = logit(0), sum = 0;
        for (std::int64_t k = 1; k < classes_; ++k) highest = std::max(highest, logit(k));
        float* const softmax = probabilities(index);
        for (std::int64_t k = 0; k < classes_; ++k) {
            const double power = std::exp(logit(k) - highest);
            softmax[k] = static_cast<float>(power);
            sum += power;
        }
        for (std::int64_t k = 0; k < classes_; ++k) {
            softmax[k] = static_cast<float>(softmax[k] / sum);
        }
        static_cast<float*>(tensors_.workspace)[index] =
            static_cast<float>(at.weight * (std::log(sum) + highest - logit(at.label)));
    }

    void average(std::int64_t images) const {
        const float* losses = static_cast<const float*>(tensors_.workspace);
        for (std::int64_t image = 0; image < images; ++image) {
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
            numbers_.write(tensors_.input_gradients[0], numbers_.index(at.image, at.pixel, k),
                           static_cast<float>(scale * slope));
        }
    }

    ops::CellCrossEntropy op_;
    KernelOptions options_;
    ImageNumbers numbers_;
    std::int64_t cells_, classes_;
    KernelTensors tensors_;
};

}  // namespace

std::unique_ptr<Kernel> build_cell_cross_entropy(const ops::CellCrossEntropy& op,
                                                 const KernelOptions& options,
                                                 const Context& context) {
    return std::make_unique<CellCrossEntropyKernel>(op, options, context);
}

}  // namespace hpcai::device::cpu
