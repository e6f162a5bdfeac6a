// SPDX-License-Identifier: Apache-2.0

#include "flat_tiles.hpp"

namespace hpcai::device::cpu {
namespace {

/// Backward, the workspace holds the sums of each image, (2, N, C) f32; the second half is what the
/// normalization's loop sums beside them.
class BiasKernel final : public Kernel {
public:
    BiasKernel(const ops::Bias& op, const KernelOptions& options, const Context& context)
        : op_(op),
          mode_(options.mode),
          loops_(*context.loops),
          grid_(tile_grid(context.layouts, op.input, options.compute)),
          channels_(op.input[3]) {}

    KernelMemory memory() const override {
        if (mode_ == Mode::inference) return {};
        return {0, 0, static_cast<std::size_t>(2 * grid_.images * channels_) * sizeof(float)};
    }
    std::size_t max_output_gradients() const override { return 2; }
    bool backward_reads_output() const override { return op_.relu; }
    std::vector<ops::Pass> passes() const override {
        if (mode_ == Mode::inference) return {ops::Pass::forward};
        return {ops::Pass::forward, ops::Pass::input_gradient};
    }
    void bind(const KernelTensors& tensors) override { tensors_ = tensors; }

    void run(ops::Pass pass) override {
        if (pass == ops::Pass::forward) {
            forward();
            return;
        }
        sum_gradients();
        combine_sums();
    }

private:
    void forward() const {
#pragma omp parallel for collapse(2) schedule(static)
        for (std::int64_t image = 0; image < grid_.images; ++image) {
            for (std::int64_t tile = 0; tile < grid_.tiles; ++tile) {
                loops_.apply(grid_.tile,
                             {grid_.at(tensors_.inputs[0], image, tile), nullptr,
                              grid_.at(tensors_.output, image, tile), identity_.one,
                              tensors_.parameters[0] + tile * grid_.tile.lanes, op_.relu});
            }
        }
    }

    float* sums(int which, std::int64_t image) const {
        return static_cast<float*>(tensors_.workspace) + (which * grid_.images + image) * channels_;
    }

    /// Writes the input's gradient on the way.
    void sum_gradients() const {
        const auto& gradients = tensors_.output_gradients;
        void* second = gradients.size() > 1 ? gradients[1] : nullptr;
        // The loop reads a second operand in any case; without a ReLU the gradient does for it.
        void* gate = op_.relu ? tensors_.output : gradients[0];
#pragma omp parallel for collapse(2) schedule(static)
        for (std::int64_t image = 0; image < grid_.images; ++image) {
            for (std::int64_t tile = 0; tile < grid_.tiles; ++tile) {
                const GradientSource source{grid_.at(gradients[0], image, tile),
                                            grid_.at(second, image, tile),
                                            grid_.at(gate, image, tile),
                                            grid_.at(gate, image, tile),
                                            identity_.one,
                                            identity_.zero,
                                            op_.relu};
                const std::int64_t channel = tile * grid_.tile.lanes;
                loops_.gradient_sums(
                    grid_.tile,
                    {source, grid_.at(tensors_.input_gradients[0], image, tile), identity_.zero,
                     sums(0, image) + channel, sums(1, image) + channel});
            }
        }
    }

    void combine_sums() const {
        for (std::int64_t channel = 0; channel < channels_; ++channel) {
            double sum = 0;
            for (std::int64_t image = 0; image < grid_.images; ++image) {
                sum += sums(0, image)[channel];
            }
            tensors_.parameter_gradients[0][channel] = static_cast<float>(sum);
        }
    }

    ops::Bias op_;
    Mode mode_;
    const SimdKernels& loops_;
    TileGrid grid_;
    std::int64_t channels_;
    Identity identity_;
    KernelTensors tensors_;
};

}  // namespace

std::unique_ptr<Kernel> build_bias(const ops::Bias& op, const KernelOptions& options,
                                   const Context& context) {
    return std::make_unique<BiasKernel>(op, options, context);
}

}  // namespace hpcai::device::cpu
