// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "flat_tiles.hpp"

namespace hpcai::device::cpu {
namespace {

/// A BatchNorm whose statistics and parameters stay as they are: an affine map of each channel.
/// Saved: its scale and shift, (2, C) f32.
class FrozenNormKernel final : public Kernel {
public:
    FrozenNormKernel(const ops::BatchNorm& op, const KernelOptions& options, const Context& context)
        : op_(op),
          mode_(options.mode),
          loops_(*context.loops),
          grid_(tile_grid(context.layouts, op.input, options.compute)),
          channels_(op.input[3]) {}

    KernelMemory memory() const override {
        return {static_cast<std::size_t>(2 * channels_) * sizeof(float), 0, 0};
    }
    std::size_t max_output_gradients() const override { return 2; }
    bool backward_reads_output() const override { return op_.relu; }
    std::vector<ops::Pass> passes() const override {
        if (mode_ == Mode::inference) return {ops::Pass::forward};
        return {ops::Pass::forward, ops::Pass::input_gradient};
    }
    void bind(const KernelTensors& tensors) override {
        tensors_ = tensors;
        scale_ = static_cast<float*>(tensors.saved);
        shift_ = scale_ + channels_;
    }

    void run(ops::Pass pass) override {
        if (pass == ops::Pass::forward) {
            forward();
            return;
        }
        backward(tensors_.input_gradients[0], scale_);
        if (op_.add) backward(tensors_.input_gradients[1], nullptr);
    }

private:
    template <typename Body>
    void for_each_tile(const Body& body) const {
#pragma omp parallel for collapse(2) schedule(static)
        for (std::int64_t image = 0; image < grid_.images; ++image) {
            for (std::int64_t tile = 0; tile < grid_.tiles; ++tile) body(image, tile);
        }
    }

    void forward() const {
        for (std::int64_t channel = 0; channel < channels_; ++channel) {
            const double scale = tensors_.parameters[0][channel] /
                                 std::sqrt(tensors_.running_variance[channel] + op_.epsilon);
            scale_[channel] = static_cast<float>(scale);
            shift_[channel] = static_cast<float>(tensors_.parameters[1][channel] -
                                                 tensors_.running_mean[channel] * scale);
        }
        void* residual = op_.add ? tensors_.inputs[1] : nullptr;
        for_each_tile([&](std::int64_t image, std::int64_t tile) {
            const std::int64_t channel = tile * grid_.tile.lanes;
            loops_.apply(grid_.tile,
                         {grid_.at(tensors_.inputs[0], image, tile),
                          grid_.at(residual, image, tile), grid_.at(tensors_.output, image, tile),
                          scale_ + channel, shift_ + channel, op_.relu});
        });
    }

    /// Writes `scale` (1 where it is null) times the gradient behind the ReLU.
    void backward(void* to, const float* scale) const {
        if (to == nullptr) return;
        const auto& gradients = tensors_.output_gradients;
        void* second = gradients.size() > 1 ? gradients[1] : nullptr;
        void* gate = op_.relu ? tensors_.output : gradients[0];
        for_each_tile([&](std::int64_t image, std::int64_t tile) {
            const GradientSource source{grid_.at(gradients[0], image, tile),
                                        grid_.at(second, image, tile),
                                        grid_.at(gate, image, tile),
                                        grid_.at(gate, image, tile),
                                        identity_.one,
                                        identity_.zero,
                                        op_.relu};
            const float* by = scale == nullptr ? identity_.one : scale + tile * grid_.tile.lanes;
            loops_.gradient_apply(grid_.tile, {source, grid_.at(to, image, tile), by,
                                               identity_.zero, identity_.zero});
        });
    }

    ops::BatchNorm op_;
    Mode mode_;
    const SimdKernels& loops_;
    TileGrid grid_;
    std::int64_t channels_;
    Identity identity_;
    KernelTensors tensors_;
    float* scale_ = nullptr;  // (C)
    float* shift_ = nullptr;  // (C)
};

}  // namespace

std::unique_ptr<Kernel> build_frozen_norm(const ops::BatchNorm& op, const KernelOptions& options,
                                          const Context& context) {
    return std::make_unique<FrozenNormKernel>(op, options, context);
}

}  // namespace hpcai::device::cpu
