// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "anchor_grid.hpp"

namespace hpcai::device::cpu {
namespace {

constexpr std::int64_t kRpnTargetColumns = 6;  // of a row of targets

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

    /// Calls body(row of the targets, anchor index) for the sampled anchors.
    template <typename Body>
    void for_each_sample(std::int64_t image, const Body& body) const {
        const std::int64_t samples = op_.targets[1];
        const float* row =
            static_cast<const float*>(tensors_.inputs.back()) + image * samples * kRpnTargetColumns;
        for (std::int64_t i = 0; i < samples; ++i, row += kRpnTargetColumns) {
            const bool is_used = row[0] >= 0 && row[0] < static_cast<float>(grid_.count());
            if (is_used) body(row, grid_.index_of(static_cast<std::int64_t>(row[0])));
        }
    }

    double count(std::int64_t image) const {
        double samples = 0;
        for_each_sample(image, [&](const float*, const AnchorIndex&) { ++samples; });
        return samples;
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
        const double samples = std::max(count(image), 1.0);
        float* losses = output() + 2 * image;
        losses[0] = static_cast<float>(class_loss / samples);
        losses[1] = static_cast<float>(box_loss / samples);
    }

    void clear_gradients() const {
        const auto tensors = static_cast<std::int64_t>(2 * grid_.levels());
#pragma omp parallel for collapse(2) schedule(dynamic)
        for (std::int64_t tensor = 0; tensor < tensors; ++tensor) {
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
        const double scale = *tensors_.loss_scale / std::max(count(image), 1.0);
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

}  // namespace

KernelPtr build(const ops::RpnLoss& op, const KernelOptions& options, const Context& context) {
    return std::make_unique<RpnLossKernel>(op, options, context);
}

}  // namespace hpcai::device::cpu
