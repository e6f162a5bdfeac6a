// SPDX-License-Identifier: Apache-2.0
#include "batch_norm.hpp"
#include "batch_norm_gradient.cuh"

namespace hpcai::kernels {
namespace batch_norm {
namespace {

constexpr int kDualSums = 3;  // of g, of g (x - mean) of the outer norm, and of the inner one

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

template <typename T, bool kTwo>
__global__ void __launch_bounds__(kThreads, kBlocksPerProcessor)
    dual_sum_kernel(const Tiling tiling, const DualTensors<T> tensors, float* workspace) {
    const Place<kWide> place(tiling);
    float sums[kDualSums][kWide] = {};
    if (place.works) {
        const Source<T, kWide, Gate::mask, kTwo> source(tensors.outer, place.channel,
                                                        tiling.channels, place.channel);
        const auto outer_mean = load<kWide>(tensors.outer.mean + place.channel);
        const auto inner_mean = load<kWide>(tensors.inner_mean + place.channel);
        place.template walk<1>(
            tiling.pixels,
            [&](std::int64_t pixel) {
                return DualLoaded<T>{source.read(pixel),
                                     Raw<T, kWide>::load(tensors.inner_x + source.at(pixel))};
            },
            [&](std::int64_t pixel, const DualLoaded<T>& element) {
                const Pack<kWide> outer_x = element.outer.x.numbers();
                const Pack<kWide> inner_x = element.inner_x.numbers();
                const Pack<kWide> g = source.kept_gradient(pixel, element.outer, outer_x);
                for (int i = 0; i < kWide; ++i) {
                    const float one = g.lane[i];
                    sums[0][i] += one;
                    sums[1][i] = fmaf(one, outer_x.lane[i] - outer_mean.lane[i], sums[1][i]);
                    sums[2][i] = fmaf(one, inner_x.lane[i] - inner_mean.lane[i], sums[2][i]);
                }
            });
    }
    write_partial(tiling, place, sums, workspace);
}

/// Coefficients are (norms, 3, C); a row of blocks for each norm.
__global__ void __launch_bounds__(kFinalThreads)
    combine_dual_kernel(const Tiling tiling, const ChannelGradients outer,
                        const ChannelGradients inner, const float* workspace, float* coefficients) {
    const int norm = static_cast<int>(blockIdx.y);
    ChannelGradients of = outer;
    if (norm == 1) of = inner;  // a reference to one of them would use local memory
    combine_gradients<kDualSums>(tiling, 1, of, workspace,
                                 coefficients + norm * 3 * tiling.channels);
}

/// The g of a thread's pixel is read before it is replaced by the inner dx. A thread keeps
/// kLanes<T> channels (4 with fp32, not 8), because the coefficients take many registers.
template <typename T>
__global__ void __launch_bounds__(kThreads, kBlocksPerProcessor)
    dual_apply_kernel(const Tiling tiling, const T* outer_x, const T* inner_x,
                      const float* coefficients, T* outer_dx, T* inner_dx) {
    constexpr int kWidth = kLanes<T>;
    const Place<kWidth> place(tiling);
    if (!place.works) return;
    struct Element {
        Raw<T, kWidth> g, outer_x, inner_x;
    };
    const std::int64_t channels = tiling.channels;
    const float* of_channel = coefficients + place.channel;
    const InputGradient<kWidth> outer(of_channel, channels);
    const InputGradient<kWidth> inner(of_channel + 3 * channels, channels);
    // In descending order, as in the forward pass.
    const std::int64_t last = (tiling.pixels - 1) * channels + place.channel;
    place.template walk<1>(
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

template <typename T>
DualTensors<T> tensors_of(const BatchNormDualGradientArguments& of) {
    return {{static_cast<const T*>(of.outer.x), static_cast<const T*>(of.dy0),
             static_cast<const T*>(of.dy1), nullptr, nullptr, of.outer.statistics.mean,
             reinterpret_cast<const std::uint8_t*>(of.mask), static_cast<T*>(of.inner.dx)},
            static_cast<const T*>(of.inner.x),
            of.inner.statistics.mean};
}

ChannelGradients gradients_of(const BatchNormDualGradientArguments::Norm& norm, int products) {
    return {norm.gamma,          norm.statistics.mean, norm.statistics.inverse_deviation,
            norm.gamma_gradient, norm.beta_gradient,   products};
}

}  // namespace
}  // namespace batch_norm

std::size_t batch_norm_dual_workspace_bytes(const BatchNormShape& shape) {
    const std::int64_t partial = batch_norm::partial_floats(shape, batch_norm::kDualSums);
    return sizeof(float) * static_cast<std::size_t>(partial + 2 * 3 * shape.channels);
}

void batch_norm_dual_gradient(const BatchNormShape& shape,
                              const BatchNormDualGradientArguments& arguments, Stream stream) {
    using namespace batch_norm;
    if (shape.spans != 1 || !is_wide(shape)) fail("joined norms of an unexpected shape");
    const Tiling tiling = tiling_of(shape);
    auto* workspace = static_cast<float*>(arguments.workspace);
    float* coefficients = workspace + partial_floats(shape, kDualSums);
    Grid finals = final_grid(shape.channels, stream);
    finals.blocks_y = 2;
    with_type(shape.dtype, [&]<typename T>() {
        const Tiling of_apply = tiling_of(shape, kLanes<T>);
        launch(arguments.dy1 != nullptr ? dual_sum_kernel<T, true> : dual_sum_kernel<T, false>,
               grid_of(shape, tiling, stream), tiling, tensors_of<T>(arguments), workspace);
        launch(combine_dual_kernel, finals, tiling, gradients_of(arguments.outer, 1),
               gradients_of(arguments.inner, 2), workspace, coefficients);
        launch(dual_apply_kernel<T>, grid_of(shape, of_apply, stream), of_apply,
               static_cast<const T*>(arguments.outer.x), static_cast<const T*>(arguments.inner.x),
               coefficients, static_cast<T*>(arguments.outer.dx),
               static_cast<T*>(arguments.inner.dx));
    });
}

}  // namespace hpcai::kernels
