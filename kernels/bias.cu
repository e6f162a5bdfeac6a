// SPDX-License-Identifier: Apache-2.0
#include "elementwise.hpp"
#include "folded.cuh"

namespace hpcai::kernels {
namespace {

using namespace batch_norm;

struct ChannelCounts {
    int channels, stored;  // without and with padding channels
};

template <typename T, int kWidth>
__global__ void __launch_bounds__(kThreads, kBlocksPerProcessor)
    bias_kernel(const Tiling tiling, const ChannelCounts counts, const BiasArguments arguments) {
    const TileThread<kWidth> thread(tiling);
    if (!thread.is_active) return;
    Pack<kWidth> bias;
    for (int i = 0; i < kWidth; ++i) {
        const int channel = (thread.channel + i) % counts.stored;
        bias.lane[i] = channel < counts.channels ? arguments.bias[channel] : 0;
    }
    const T* x = static_cast<const T*>(arguments.x) + thread.channel;
    T* y = static_cast<T*>(arguments.y) + thread.channel;
    thread.template for_each_pixel<2 * kInFlight<T>>(
        tiling.pixels,
        [&](std::int64_t pixel) { return Raw<T, kWidth>::load(x + pixel * tiling.channels); },
        [&](std::int64_t pixel, const Raw<T, kWidth>& raw) {
            Pack<kWidth> value = raw.numbers();
            for (int i = 0; i < kWidth; ++i) {
                value.lane[i] += bias.lane[i];
                if (arguments.relu && value.lane[i] <= 0) value.lane[i] = 0;
            }
            store(y + pixel * tiling.channels, value);
        });
}

/// Writes dx, and the sums of each chunk of pixels to `parts` (chunks, folded C).
template <typename T, int kWidth, bool kGated, bool kHasDy1>
__global__ void __launch_bounds__(kThreads, kBlocksPerProcessor)
    gradient_kernel(const Tiling tiling, const GatedTensors<T> tensors, T* dx, float* parts) {
    using Gradient = GatedGradient<T, kWidth, kGated, kHasDy1>;
    const TileThread<kWidth> thread(tiling);
    float sums[1][kWidth] = {};
    thread.template for_each_pixel<kInFlight<T>>(
        tiling.pixels,
        [&](std::int64_t pixel) {
            return Gradient::load(tensors, pixel * tiling.channels + thread.channel);
        },
        [&](std::int64_t pixel, const Gradient& loaded) {
            const Pack<kWidth> gradient = loaded.numbers();
            if (dx != nullptr) store(dx + pixel * tiling.channels + thread.channel, gradient);
            for (int i = 0; i < kWidth; ++i) sums[0][i] += gradient.lane[i];
        });
    write_partial(tiling, thread, sums, parts);
}

constexpr unsigned kWarps = 8;  // of a block that combines parts; one channel per warp

__global__ void __launch_bounds__(kWarps* kWarp)
    combine_parts_kernel(int parts, const ChannelCounts counts, const float* from,
                         float* bias_gradient) {
    const int channel = static_cast<int>(blockIdx.x * kWarps + threadIdx.x / kWarp);
    if (channel >= counts.channels) return;
    double sum = 0;
    for (int part = static_cast<int>(threadIdx.x % kWarp); part < parts;
         part += static_cast<int>(kWarp)) {
        sum += from[static_cast<std::int64_t>(part) * counts.stored + channel];
    }
    sum = reduce_warp(sum, Sum{});
    if (threadIdx.x % kWarp == 0) bias_gradient[channel] = static_cast<float>(sum);
}

Folded folded(const BiasShape& shape) {
    return {shape.dtype, shape.pixels, shape.stored_channels};
}

ChannelCounts channel_counts(const BiasShape& shape) {
    return {static_cast<int>(shape.channels), static_cast<int>(shape.stored_channels)};
}

}  // namespace

void bias(const BiasShape& shape, const BiasArguments& arguments, Stream stream) {
    const BatchNormShape tiled = folded(shape).shape;
    const Tiling tiling = tiling_of(tiled);
    with_type(shape.dtype, [&]<typename T>() {
        launch(is_wide(tiled) ? bias_kernel<T, kWide> : bias_kernel<T, 1>,
               grid_of(tiled, tiling, stream), tiling, channel_counts(shape), arguments);
    });
}

std::size_t bias_workspace_bytes(const BiasShape& shape) {
    const BatchNormShape tiled = folded(shape).shape;
    return sizeof(float) * static_cast<std::size_t>(tiling_of(tiled).chunks * tiled.channels);
}

void bias_gradient(const BiasShape& shape, const BiasGradientArguments& arguments, Stream stream) {
    const Folded tiled = folded(shape);
    const Tiling tiling = tiling_of(tiled.shape);
    auto* parts = static_cast<float*>(arguments.workspace);
    with_gradients(tiled.shape, arguments,
                   [&]<typename T, int kWidth, bool kGated, bool kHasDy1>(const auto& tensors) {
                       launch(gradient_kernel<T, kWidth, kGated, kHasDy1>,
                              grid_of(tiled.shape, tiling, stream), tiling, tensors,
                              static_cast<T*>(arguments.dx), parts);
                   });
    launch(combine_parts_kernel,
           {.blocks_x = divide_up(shape.channels, kWarps),
            .threads = kWarps * kWarp,
            .stream = stream},
           static_cast<int>(tiling.chunks * tiled.fold), channel_counts(shape), parts,
           arguments.bias_gradient);
}

}  // namespace hpcai::kernels
