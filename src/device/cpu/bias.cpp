// SPDX-License-Identifier: Apache-2.0
#include "flat_tiles.hpp"

namespace hpcai::device::cpu {
namespace {

/// In the backward pass the workspace has two sums of each image, (2, N, C) f32. The second is a
/// by-product of the normalization loop and is not used.
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
                                      grid_.at(tensors_.output, image, tile), identity_.ones,
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

    /// Also writes the gradient of the input.
    void sum_gradients() const {
        // The loop always reads a gate, but does not use it without a ReLU.
        void* gate = op_.relu ? tensors_.output : output_gradient();
        grid_.for_each([&](std::int64_t image, std::int64_t tile) {
            const GradientSource source =
                identity_.source(grid_.at(output_gradient(), image, tile),
                                 grid_.at(second_output_gradient(), image, tile),
                                 grid_.at(gate, image, tile), op_.relu);
            const std::int64_t channel = tile * grid_.tile.lanes;
            loops_.gradient_sums(
                grid_.tile, {source, grid_.at(tensors_.input_gradients[0], image, tile),
                             identity_.zeros, sums(0, image) + channel, sums(1, image) + channel});
        });
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

KernelPtr build(const ops::Bias& op, const KernelOptions& options, const Context& context) {
    return std::make_unique<BiasKernel>(op, options, context);
}

}  // namespace hpcai::device::cpu
