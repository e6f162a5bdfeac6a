// SPDX-License-Identifier: Apache-2.0
#include "batch_norm.hpp"
#include "batch_norm_gradient.cuh"

namespace hpcai::kernels {
namespace {

using namespace batch_norm;

template <typename T, int kWidth, Gate kGate, bool kHasDy1>
__global__ void __launch_bounds__(kThreads, kBlocksPerProcessor)
    gradient_sum_kernel(const Tiling tiling, const GradientTensors<T> tensors, float* workspace) {
    const TileThread<kWidth> thread(tiling);
    float sums[2][kWidth] = {};  // of g and of g * (x - mean)
    if (thread.is_active) {
        const std::int64_t span = blockIdx.y, channels = tiling.channels;
        const std::int64_t statistic_index = span * channels + thread.channel;
        const Source<T, kWidth, kGate, kHasDy1> source(
            tensors, span * tiling.pixels * channels + thread.channel, channels, statistic_index);
        const auto mean = load<kWidth>(tensors.mean + statistic_index);
        thread.template for_each_pixel<kInFlight<T>>(
            tiling.pixels, [&](std::int64_t pixel) { return source.read(pixel); },
            [&](std::int64_t pixel, const auto& element) {
                const Pack<kWidth> x = element.x.numbers();
                const Pack<kWidth> g = source.gradient_for_sums(pixel, element, x);
                for (int i = 0; i < kWidth; ++i) {
                    sums[0][i] += g.lane[i];
                    sums[1][i] = fmaf(g.lane[i], x.lane[i] - mean.lane[i], sums[1][i]);
                }
            });
    }
    write_partial(tiling, thread, sums, workspace);
}

__global__ void __launch_bounds__(kFinalThreads)
    combine_gradients_kernel(const Tiling tiling, int spans, const ChannelGradients args,
                             const float* workspace, float* coefficients) {
    combine_gradients(tiling, spans, args, workspace, coefficients);
}

__global__ void coefficients_kernel(const BatchNormShape shape,
                                    const BatchNormCoefficientsArguments args) {
    for (std::int64_t channel = first_item(); channel < shape.channels; channel += item_stride()) {
        const Sums sums{args.sums[shape.channels + channel], args.sums[channel]};
        const auto [a, b, c] = coefficients_of(
            sums, args.gamma[channel], args.statistics.inverse_deviation[channel],
            args.statistics.mean[channel], static_cast<double>(args.ranks * shape.pixels));
        args.coefficients[channel] = static_cast<float>(a);
        args.coefficients[shape.channels + channel] = static_cast<float>(b);
        args.coefficients[2 * shape.channels + channel] = static_cast<float>(c);
    }
}

template <typename T, int kWidth, Gate kGate, bool kHasDy1>
__global__ void __launch_bounds__(kThreads, kBlocksPerProcessor)
    gradient_apply_kernel(const Tiling tiling, const GradientTensors<T> tensors,
                          const float* coefficients, T* dx) {
    const TileThread<kWidth> thread(tiling);
    if (!thread.is_active) return;
    const std::int64_t channels = tiling.channels;
    // In descending order, for the reason in apply_kernel of batch_norm_forward.cu.
    const std::int64_t span = gridDim.y - 1 - blockIdx.y, all = gridDim.y * channels;
    const std::int64_t statistic_index = span * channels + thread.channel;
    const std::int64_t last = ((span + 1) * tiling.pixels - 1) * channels + thread.channel;
    const Source<T, kWidth, kGate, kHasDy1> source(tensors, last, -channels, statistic_index);
    const InputGradient<kWidth> input_gradient(coefficients + statistic_index, all);
    constexpr bool kOnePixel = kHasDy1 && kGate == Gate::affine;  // in flight, to save registers
    thread.template for_each_pixel<kOnePixel ? 1 : kInFlight<T>>(
        tiling.pixels, [&](std::int64_t pixel) { return source.read(pixel); },
        [&](std::int64_t pixel, const auto& element) {
            const Pack<kWidth> x = element.x.numbers();
            store(dx + source.at(pixel), input_gradient(source.gradient(element, x), x));
        });
}

template <typename T>
GradientTensors<T> tensors_of(const BatchNormGradientArguments& arguments) {
    const BatchNormStatistics& statistics = arguments.statistics;
    return {static_cast<const T*>(arguments.x),
            static_cast<const T*>(arguments.dy0),
            static_cast<const T*>(arguments.dy1),
            statistics.scale,
            statistics.shift,
            statistics.mean,
            reinterpret_cast<const std::uint8_t*>(arguments.mask),
            static_cast<T*>(arguments.residual_gradient)};
}

/// Calls `body` with the width, the gate and whether the output has two gradients.
template <typename Body>
void with_variant(bool wide, Gate gate, bool has_dy1, const Body& body) {
    const auto with_gate = [&]<int kWidth, bool kHasDy1>() {
        if (gate == Gate::none) return body.template operator()<kWidth, Gate::none, kHasDy1>();
        if (gate == Gate::affine) return body.template operator()<kWidth, Gate::affine, kHasDy1>();
        return body.template operator()<kWidth, Gate::mask, kHasDy1>();
    };
    if (wide && has_dy1) return with_gate.template operator()<kWide, true>();
    if (wide) return with_gate.template operator()<kWide, false>();
    if (has_dy1) return with_gate.template operator()<1, true>();
    with_gate.template operator()<1, false>();
}

float* coefficients_at(const BatchNormShape& shape, const BatchNormGradientArguments& arguments) {
    return static_cast<float*>(arguments.workspace) + partial_floats(shape);
}

}  // namespace

void batch_norm::sum_gradients(const BatchNormShape& shape,
                               const BatchNormGradientArguments& arguments, Stream stream) {
    const Gate gate = arguments.mask != nullptr ? Gate::mask
                      : arguments.relu          ? Gate::affine
                                                : Gate::none;
    const Tiling tiling = tiling_of(shape);
    auto* workspace = static_cast<float*>(arguments.workspace);
    with_type(shape.dtype, [&]<typename T>() {
        with_variant(is_wide(shape), gate, arguments.dy1 != nullptr,
                     [&]<int kWidth, Gate kGate, bool kHasDy1>() {
                         launch(gradient_sum_kernel<T, kWidth, kGate, kHasDy1>,
                                grid_of(shape, tiling, stream), tiling, tensors_of<T>(arguments),
                                workspace);
                     });
    });
}

void batch_norm_gradient_sums(const BatchNormShape& shape,
                              const BatchNormGradientArguments& arguments, Stream stream) {
    sum_gradients(shape, arguments, stream);
    const BatchNormStatistics& statistics = arguments.statistics;
    Tiling tiling = tiling_of(shape);
    if (arguments.statistics_pixels > 0) tiling.pixels = arguments.statistics_pixels;
    launch(combine_gradients_kernel, final_grid(shape.channels, stream), tiling,
           static_cast<int>(shape.spans),
           ChannelGradients{arguments.gamma, statistics.mean, statistics.inverse_deviation,
                            arguments.gamma_gradient, arguments.beta_gradient},
           static_cast<const float*>(arguments.workspace), coefficients_at(shape, arguments));
}

void batch_norm_gradient_coefficients(const BatchNormShape& shape,
                                      const BatchNormCoefficientsArguments& arguments,
                                      Stream stream) {
    launch(coefficients_kernel, grid_over(shape.channels, stream), shape, arguments);
}

void batch_norm_gradient_apply(const BatchNormShape& shape,
                               const BatchNormGradientArguments& arguments, Stream stream) {
    BatchNormGradientArguments args = arguments;
    if (args.mask != nullptr) {  // the sums have written the gradient of the ReLU's input
        args.dy0 = args.residual_gradient;
        args.dy1 = nullptr;
        args.relu = false;
    }
    const float* coefficients =
        args.coefficients != nullptr ? args.coefficients : coefficients_at(shape, args);
    const Tiling tiling = tiling_of(shape);
    with_type(shape.dtype, [&]<typename T>() {
        with_variant(is_wide(shape), args.relu ? Gate::affine : Gate::none, args.dy1 != nullptr,
                     [&]<int kWidth, Gate kGate, bool kHasDy1>() {
                         if constexpr (kGate != Gate::mask) {
                             launch(gradient_apply_kernel<T, kWidth, kGate, kHasDy1>,
                                    grid_of(shape, tiling, stream), tiling, tensors_of<T>(args),
                                    coefficients, static_cast<T*>(args.dx));
                         }
                     });
    });
}

}  // namespace hpcai::kernels
