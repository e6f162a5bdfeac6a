// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include <hpcai/ops/box_math.hpp>

#include "numbers.hpp"

namespace hpcai::device::cpu {
namespace {

constexpr std::int64_t kTargetColumns = 9;  // of a row of targets

class RoiLossKernel final : public OperationKernel<ops::RoiLoss, Context> {
public:
    using OperationKernel::OperationKernel;

private:
    void forward() override {
#pragma omp parallel for schedule(static)
        for (std::int64_t image = 0; image < images_; ++image) forward(image);
    }
    void input_gradient() override {
#pragma omp parallel for schedule(static)
        for (std::int64_t image = 0; image < images_; ++image) backward(image);
    }

    const float* target(std::int64_t row) const {
        return input(2) + row * kTargetColumns;
    }
    const float* logits(std::int64_t row) const {
        return input(0) + row * op_.classes;
    }
    bool is_used(std::int64_t row) const {
        return target(row)[4] >= 0 && target(row)[4] < static_cast<float>(op_.classes);
    }
    std::int64_t label(std::int64_t row) const {
        return static_cast<std::int64_t>(target(row)[4]);
    }

    double count(std::int64_t image) const {
        std::int64_t used = 0;
        for (std::int64_t row = image * samples_; row < (image + 1) * samples_; ++row) {
            used += is_used(row) ? 1 : 0;
        }
        return static_cast<double>(std::max<std::int64_t>(used, 1));
    }

    double log_sum(std::int64_t row) const {
        const float* x = logits(row);
        const double highest = *std::max_element(x, x + op_.classes);
        double sum = 0;
        for (std::int64_t k = 0; k < op_.classes; ++k) sum += std::exp(x[k] - highest);
        return highest + std::log(sum);
    }

    /// The difference between delta `which` of the label and its target.
    float difference(std::int64_t row, std::int64_t which) const {
        const float* deltas = input(1);
        return deltas[(row * op_.classes + label(row)) * 4 + which] - target(row)[5 + which];
    }

    void forward(std::int64_t image) const {
        double class_loss = 0, box_loss = 0;
        for (std::int64_t row = image * samples_; row < (image + 1) * samples_; ++row) {
            if (!is_used(row)) continue;
            class_loss += log_sum(row) - logits(row)[label(row)];
            for (std::int64_t which = 0; which < 4 && label(row) > 0; ++which) {
                box_loss += ops::smooth_l1(difference(row, which));
            }
        }
        float* losses = output() + 2 * image;
        losses[0] = static_cast<float>(class_loss / count(image));
        losses[1] = static_cast<float>(box_loss / count(image));
    }

    void backward(std::int64_t image) const {
        const double scale = *tensors_.loss_scale / count(image);
        for (std::int64_t row = image * samples_; row < (image + 1) * samples_; ++row) {
            if (tensors_.input_gradients[0] != nullptr) write_logit_gradients(row, scale);
            if (tensors_.input_gradients[1] != nullptr) write_delta_gradients(row, scale);
        }
    }

    void write_logit_gradients(std::int64_t row, double scale) const {
        const bool used = is_used(row);
        const double total = used ? log_sum(row) : 0;
        for (std::int64_t k = 0; k < op_.classes; ++k) {
            const double target = used && k == label(row) ? 1 : 0;
            const double slope = used ? std::exp(logits(row)[k] - total) - target : 0;
            write(tensors_.input_gradients[0], row * op_.classes + k, scale * slope);
        }
    }

    void write_delta_gradients(std::int64_t row, double scale) const {
        const std::int64_t foreground = is_used(row) ? label(row) : 0;
        for (std::int64_t k = 0; k < op_.classes; ++k) {
            const bool is_target = foreground > 0 && k == foreground;
            for (std::int64_t which = 0; which < 4; ++which) {
                const double slope = is_target ? ops::smooth_l1_slope(difference(row, which)) : 0;
                write(tensors_.input_gradients[1], (row * op_.classes + k) * 4 + which,
                      scale * slope);
            }
        }
    }

    void write(void* to, std::int64_t index, double value) const {
        const auto number = static_cast<float>(value);
        if (options_.compute == DType::f32) {
            static_cast<float*>(to)[index] = number;
        } else {
            static_cast<BFloat*>(to)[index] = to_bfloat(number);
        }
    }

    const std::int64_t images_ = op_.targets[0], samples_ = op_.targets[1];
};

}  // namespace

KernelPtr build(const ops::RoiLoss& op, const KernelOptions& options, const Context& context) {
    return std::make_unique<RoiLossKernel>(op, options, context);
}

}  // namespace hpcai::device::cpu
