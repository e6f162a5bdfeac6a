// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "flat_tiles.hpp"

namespace hpcai::device::cpu {
namespace {

/// A BatchNorm with fixed statistics and parameters: an affine map of each channel. Saved: scale
/// and shift, (2, C) f32.
class FrozenNormKernel final : public OperationKernel<ops::BatchNorm, Context> {
public:
    using OperationKernel::OperationKernel;

    KernelMemory memory() const override {
        return {.saved_bytes = static_cast<std::size_t>(2 * channels_) * sizeof(float)};
    }
    void bind(const KernelTensors& tensors) override {
        OperationKernel::bind(tensors);
        scale_ = static_cast<float*>(tensors.saved);
        shift_ = scale_ + channels_;
    }

private:
    void input_gradient() override {
        backward(tensors_.input_gradients[0], scale_);
        if (op_.add) backward(tensors_.input_gradients[1], nullptr);
    }

    void forward() override {
        for (std::int64_t channel = 0; channel < channels_; ++channel) {
            const double scale = tensors_.parameters[0][channel] /
                                 std::sqrt(tensors_.running_variance[channel] + op_.epsilon);
            scale_[channel] = static_cast<float>(scale);
            shift_[channel] = static_cast<float>(tensors_.parameters[1][channel] -
                                                 tensors_.running_mean[channel] * scale);
        }
        void* residual = op_.add ? tensors_.inputs[1] : nullptr;
        grid_.for_each([&](const TileIndex& at) {
            loops_.apply(grid_.tile, {grid_.at(tensors_.inputs[0], at), grid_.at(residual, at),
                                      grid_.at(tensors_.output, at), scale_ + at.channel,
                                      shift_ + at.channel, op_.relu});
        });
    }

    /// Writes the gradient of the ReLU's input, times `scale` (1 if null), unless `to` is null.
    void backward(void* to, const float* scale) const {
        if (to == nullptr) return;
        // Without a ReLU, the loop reads the gate but does not need it: any valid address serves.
        void* gate = op_.relu ? tensors_.output : output_gradient();
        grid_.for_each([&](const TileIndex& at) {
            const GradientSource source = identity_.source(grid_.at(output_gradient(), at),
                                                           grid_.at(added_output_gradient(), at),
                                                           grid_.at(gate, at), op_.relu);
            const float* a = scale == nullptr ? identity_.ones : scale + at.channel;
            loops_.gradient_apply(grid_.tile,
                                  {source, grid_.at(to, at), a, identity_.zeros, identity_.zeros});
        });
    }

    const SimdKernels& loops_ = *context_.loops;
    const TileGrid grid_ = tile_grid(context_.layouts, op_.input, options_.compute);
    const std::int64_t channels_ = op_.input[3];
    Identity identity_;
    float* scale_ = nullptr;  // (C)
    float* shift_ = nullptr;  // (C)
};

}  // namespace

KernelPtr build_frozen_norm(const ops::BatchNorm& op, const KernelOptions& options,
                            const Context& context) {
    return std::make_unique<FrozenNormKernel>(op, options, context);
}

}  // namespace hpcai::device::cpu
