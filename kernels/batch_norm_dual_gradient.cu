// SPDX-License-Identifier: Apache-2.0
#include "batch_norm.hpp"
#include "batch_norm_gradient.cuh"

namespace hpcai::kernels {
namespace {

using namespace batch_norm;

constexpr int kDualSums = 3;  // of g (see sum_gradients()), and of g * (x - mean) for both norms

template <typename T>
struct DualTensors {
    GradientTensors<T> outer;
    const T* inner_x;
    const float* inner_mean;
};

template <typename T>
struct DualLoaded {
    Loaded<T, kWide> outer;
    Raw<T, kWide> inner_x;
};

template <typename T, bool kHasDy1>
__global__ void __launch_bounds__(kThreads, kBlocksPerProcessor)
    dual_sum_kernel(const Tiling tiling, const DualTensors<T> tensors, float* workspace) {
    const TileThread<kWide> thread(tiling);
    float sums[kDualSums][kWide] = {};
    if (thread.is_active) {
        const Source<T, kWide, Gate::mask, kHasDy1> source(tensors.outer, thread.channel,
                                                           tiling.channels, thread.channel);
        const auto outer_mean = load<kWide>(tensors.outer.mean + thread.channel);
        const auto inner_mean = load<kWide>(tensors.inner_mean + thread.channel);
        thread.template for_each_pixel<1>(
            tiling.pixels,
            [&](std::int64_t pixel) {
                return DualLoaded<T>{source.read(pixel),
                                     Raw<T, kWide>::load(tensors.inner_x + source.at(pixel))};
            },
            [&](std::int64_t pixel, const DualLoaded<T>& element) {
                const Pack<kWide> outer_x = element.outer.x.numbers();
                const Pack<kWide> inner_x = element.inner_x.numbers();
                const Pack<kWide> g = source.gradient_for_sums(pixel, element.outer, outer_x);
                for (int i = 0; i < kWide; ++i) {
                    const float gradient = g.lane[i];
                    sums[0][i] += gradient;
                    sums[1][i] = fmaf(gradient, outer_x.lane[i] - outer_mean.lane[i], sums[1][i]);
                    sums[2][i] = fmaf(gradient, inner_x.lane[i] - inner_mean.lane[i], sums[2][i]);
                }
            });
    }
    write_partial(tiling, thread, sums, workspace);
}

/// Writes the coefficients (2 norms, 3, C); blockIdx.y is the norm.
__global__ void __launch_bounds__(kFinalThreads)
    combine_dual_kernel(const Tiling tiling, const ChannelGradients outer,
                        const ChannelGradients inner, const float* workspace, float* coefficients) {
    const int norm = static_cast<int>(blockIdx.y);
    ChannelGradients args = outer;
    if (norm == 1) args = inner;  // a reference to a parameter would use local memory
    combine_gradients<kDualSums>(tiling, 1, args, workspace,
                                 coefficients + norm * 3 * tiling.channels);
}

/// A thread reads g of a pixel before it overwrites g with the inner dx. A thread keeps kLanes<T>
/// channels (4 with fp32, not 8), because the coefficients take many registers.
template <typename T>
__global__ void __launch_bounds__(kThreads, kBlocksPerProcessor)
    dual_apply_kernel(const Tiling tiling, const T* outer_x, const T* inner_x,
                      const float* coefficients, T* outer_dx, T* inner_dx) {
    constexpr int kWidth = kLanes<T>;
    const TileThread<kWidth> thread(tiling);
    if (!thread.is_active) return;
    struct Element {
        Raw<T, kWidth> g, outer_x, inner_x;
    };
    const std::int64_t channels = tiling.channels;
    const float* channel_coefficients = coefficients + thread.channel;
    const InputGradient<kWidth> outer(channel_coefficients, channels);
    const InputGradient<kWidth> inner(channel_coefficients + 3 * channels, channels);
    // In descending order, for the reason in apply_kernel of batch_norm_forward.cu.
    const std::int64_t last = (tiling.pixels - 1) * channels + thread.channel;
    thread.template for_each_pixel<1>(
        tiling.pixels,
        [&](std::int64_t pixel) {
            const std::int64_t at = last - pixel * channels;
            return Element{Raw<T, kWidth>::load(inner_dx + at), Raw<T, kWidth>::load(outer_x + at),
                           Raw<T, kWidth>::load(inner_x + at)};
        },
        [&](std::int64_t pixel, const Element& element) {
            const std::int64_t at = last - pixel * channels;
            const Pack<kWidth> g = element.g.numbers();
            store(outer_dx + at, outer(g, element.outer_x.numbers()));
            store(inner_dx + at, inner(g, element.inner_x.numbers()));
        });
}

ChannelGradients gradients_of(const BatchNormDualGradientArguments::Norm& norm, int index) {
    return {norm.gamma,          norm.statistics.mean, norm.statistics.inverse_deviation,
            norm.gamma_gradient, norm.beta_gradient,   index};
}

}  // namespace

std::size_t batch_norm_dual_workspace_bytes(const BatchNormShape& shape) {
    const std::int64_t partial = partial_floats(shape, kDualSums);
    return sizeof(float) * static_cast<std::size_t>(partial + 2 * 3 * shape.channels);
}

void batch_norm_dual_gradient(const BatchNormShape& shape,
                              const BatchNormDualGradientArguments& arguments, Stream stream) {
    if (shape.spans != 1 || !is_wide(shape))
        fail("fused norms require one span and a multiple of 8 channels");
    const Tiling tiling = tiling_of(shape);
    auto* workspace = static_cast<float*>(arguments.workspace);
    float* coefficients = workspace + partial_floats(shape, kDualSums);
    Grid finals = final_grid(shape.channels, stream);
    finals.blocks_y = 2;
    with_type(shape.dtype, [&]<typename T>() {
        const Tiling apply_tiling = tiling_of(shape, kLanes<T>);
        const auto *outer_x = static_cast<const T*>(arguments.outer.x),
                   *inner_x = static_cast<const T*>(arguments.inner.x);
        auto *outer_dx = static_cast<T*>(arguments.outer.dx),
             *inner_dx = static_cast<T*>(arguments.inner.dx);
        const DualTensors<T> tensors{
            {outer_x, static_cast<const T*>(arguments.dy0), static_cast<const T*>(arguments.dy1),
             nullptr, nullptr, arguments.outer.statistics.mean,
             reinterpret_cast<const std::uint8_t*>(arguments.mask), inner_dx},
            inner_x,
            arguments.inner.statistics.mean};
        launch(arguments.dy1 != nullptr ? dual_sum_kernel<T, true> : dual_sum_kernel<T, false>,
               grid_of(shape, tiling, stream), tiling, tensors, workspace);
        launch(combine_dual_kernel, finals, tiling, gradients_of(arguments.outer, 1),
               gradients_of(arguments.inner, 2), workspace, coefficients);
        launch(dual_apply_kernel<T>, grid_of(shape, apply_tiling, stream), apply_tiling, outer_x,
               inner_x, coefficients, outer_dx, inner_dx);
    });
}

}  // namespace hpcai::kernels
