// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstring>

#include <hpcai/ops/box_math.hpp>

#include "anchor_grid.hpp"
#include "numbers.hpp"

namespace hpcai::device::cpu {
namespace {

// Columns of a target: anchor number (-1: unused), label, four deltas.
constexpr std::int64_t kRpnTargetColumns = 6;

class RpnLossKernel final : public OperationKernel<ops::RpnLoss, Context> {
public:
    using OperationKernel::OperationKernel;

private:
    void forward() override {
#pragma omp parallel for schedule(static)
        for (std::int64_t image = 0; image < op_.batch; ++image) forward(image);
    }
    void input_gradient() override {
        clear_gradients();
#pragma omp parallel for schedule(static)
        for (std::int64_t image = 0; image < op_.batch; ++image) backward(image);
    }

    /// Calls body(row of the targets, AnchorIndex) for the sampled anchors.
    void for_each_sample(std::int64_t image, const auto& body) const {
        const std::int64_t samples = op_.targets[1];
        const float* row =
            static_cast<const float*>(tensors_.inputs.back()) + image * samples * kRpnTargetColumns;
        for (std::int64_t i = 0; i < samples; ++i, row += kRpnTargetColumns) {
            const bool is_used = row[0] >= 0 && row[0] < static_cast<float>(grid_.count());
            if (is_used) body(row, grid_.index_of(static_cast<std::int64_t>(row[0])));
        }
    }

    /// Returns the number of sampled anchors, at least 1.
    double count(std::int64_t image) const {
        double samples = 0;
        for_each_sample(image, [&](const float*, const AnchorIndex&) { ++samples; });
        return std::max(samples, 1.0);
    }

    static std::array<float, 4> differences(const ops::BoxDeltas& deltas, const float* row) {
        return {deltas.x - row[2], deltas.y - row[3], deltas.w - row[4], deltas.h - row[5]};
    }

    void forward(std::int64_t image) const {
        double class_loss = 0, box_loss = 0;
        for_each_sample(image, [&](const float* row, const AnchorIndex& at) {
            // log(1 + exp(x)) - label x, without overflow
            const double logit = outputs_.logit(tensors_.inputs, image, at);
            class_loss +=
                std::max(logit, 0.0) - row[1] * logit + std::log1p(std::exp(-std::abs(logit)));
            if (row[1] == 0) return;
            const auto deltas = outputs_.deltas(tensors_.inputs, image, at);
            for (const float difference : differences(deltas, row)) {
                box_loss += ops::smooth_l1(difference);
            }
        });
        const double samples = count(image);
        float* losses = output() + 2 * image;
        losses[0] = static_cast<float>(class_loss / samples);
        losses[1] = static_cast<float>(box_loss / samples);
    }

    void clear_gradients() const {
        const auto tensor_count = static_cast<std::int64_t>(2 * grid_.levels());
#pragma omp parallel for collapse(2) schedule(dynamic)
        for (std::int64_t tensor = 0; tensor < tensor_count; ++tensor) {
            for (std::int64_t image = 0; image < op_.batch; ++image) {
                const auto index = static_cast<std::size_t>(tensor);
                auto* to = static_cast<std::byte*>(tensors_.input_gradients[index]);
                if (to == nullptr) continue;
                const auto bytes = static_cast<std::size_t>(grid_.count(index % grid_.levels())) *
                                   (index < grid_.levels() ? 1 : 4) * size_of(options_.compute);
                std::memset(to + static_cast<std::size_t>(image) * bytes, 0, bytes);
            }
        }
    }

    void backward(std::int64_t image) const {
        const double scale = *tensors_.loss_scale / count(image);
        for_each_sample(image, [&](const float* row, const AnchorIndex& at) {
            const double logit = outputs_.logit(tensors_.inputs, image, at);
            const double probability = 1 / (1 + std::exp(-logit));
            const ImageAccessor& logits = outputs_.logits(at.level);
            write(logits, tensors_.input_gradients[at.level],
                  logits.index(image, at.pixel, at.index), scale * (probability - row[1]));
            if (row[1] == 0) return;
            const auto deltas = outputs_.deltas(tensors_.inputs, image, at);
            const ImageAccessor& accessor = outputs_.deltas(at.level);
            std::int64_t channel = 4 * at.index;
            for (const float difference : differences(deltas, row)) {
                write(accessor, tensors_.input_gradients[grid_.levels() + at.level],
                      accessor.index(image, at.pixel, channel++),
                      scale * ops::smooth_l1_slope(difference));
            }
        });
    }

    static void write(const ImageAccessor& accessor, void* to, std::int64_t index, double value) {
        if (to != nullptr) accessor.write(to, index, static_cast<float>(value));
    }

    const AnchorGrid grid_{op_.anchors};
    const RpnOutputs outputs_{op_.batch, op_.anchors, context_.layouts, options_.compute};
};

// Columns of a target: four box coordinates, class (-1: unused), four deltas.
constexpr std::int64_t kTargetColumns = 9;

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

    /// Returns the number of used regions, at least 1.
    double count(std::int64_t image) const {
        double used = 0;
        for (std::int64_t row = image * samples_; row < (image + 1) * samples_; ++row) {
            used += is_used(row) ? 1 : 0;
        }
        return std::max(used, 1.0);
    }

    /// Returns the logarithm of the sum of the exponentials of a region's logits.
    double log_sum(std::int64_t row) const {
        const float* x = logits(row);
        const double highest = *std::max_element(x, x + op_.classes);
        double sum = 0;
        for (std::int64_t k = 0; k < op_.classes; ++k) sum += std::exp(x[k] - highest);
        return highest + std::log(sum);
    }

    /// Returns the difference of delta `which` (0 to 3) of the region's class from its target.
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
        write_number(options_.compute, to, index, static_cast<float>(value));
    }

    const std::int64_t images_ = op_.targets[0], samples_ = op_.targets[1];
};

}  // namespace

HPCAI_BUILD_KERNEL(RpnLoss)
HPCAI_BUILD_KERNEL(RoiLoss)

}  // namespace hpcai::device::cpu
