// SPDX-License-Identifier: Apache-2.0

#include "flat_tiles.hpp"

namespace hpcai::device::cpu {
namespace {

/// Backward, the workspace holds the sums of each image, (2, N, C) f32; the second half is what the
/// normalization's loop sums beside them.
class BiasKernel final : public OperationKernel<ops::Bias, Context> {
public:
    using OperationKernel::OperationKernel;

    KernelMemory memory() const override {
        if (!trains()) return {};
        return {.workspace_bytes =
                    static_cast<std::size_t>(2 * grid_.images * channels_) * sizeof(float)};
    }

private:
    void forward() override {
        grid_.for_each([&](std::int64_t image, std::int64_t tile) {
            loops_.apply(grid_.tile, {grid_.at(tensors_.inputs[0], image, tile), nullptr,
                                      grid_.at(tensors_.output, image, tile), identity_.one,
                                      tensors_.parameters[0] + tile * grid_.tile.lanes, op_.relu});
        });
    }
    void input_gradient() override {
        sum_gradients();
        combine_sums();
    }

    float* sums(int which, std::int64_t image) const {
        return static_cast<float*>(tensors_.workspace) + (which * grid_.images + image) * channels_;
    }

    /// Writes the input's gradient on the way.
    void sum_gradients() const {
        const auto& gradients = tensors_.output_gradients;
        void* second = second_gradient();
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

    const SimdKernels& loops_ = *context_.loops;
    const TileGrid grid_ = tile_grid(context_.layouts, op_.input, options_.compute);
    const std::int64_t channels_ = op_.input[3];
    Identity identity_;
};

}  // namespace

std::unique_ptr<Kernel> build(const ops::Bias& op, const KernelOptions& options,
                              const Context& context) {
    return std::make_unique<BiasKernel>(op, options, context);
}

}  // namespace hpcai::device::cpu
