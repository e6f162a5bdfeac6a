// SPDX-License-Identifier: Apache-2.0
#include "bias.hpp"
#include "folded.cuh"

namespace hpcai::kernels {
namespace {

using namespace batch_norm;

struct Channels {
    int channels, stored;
};

template <typename T, int kWidth>
__global__ void __launch_bounds__(kThreads, kBlocksPerProcessor)
    bias_kernel(const Tiling tiling, const Channels of, const BiasArguments arguments) {
    const Place<kWidth> place(tiling);
    if (!place.works) return;
    Pack<kWidth> bias;
    for (int i = 0; i < kWidth; ++i) {
        const int channel = (place.channel + i) % of.stored;
        bias.lane[i] = channel < of.channels ? arguments.bias[channel] : 0;
    }
    const T* x = static_cast<const T*>(arguments.x) + place.channel;
    T* y = static_cast<T*>(arguments.y) + place.channel;
    place.template walk<2 * kInFlight<T>>(
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

/// Sums a number for every channel over the rows of a block and writes it as this block's part
/// (chunks, folded C). All threads call it.
template <int kWidth>
__device__ void write_part(const Tiling& tiling, const Place<kWidth>& place,
                           const float (&sum)[kWidth], float* parts) {
    __shared__ float kept[kThreads * kWidth];
    const int wide = tiling.columns * kWidth;
    if (place.row < tiling.rows) {
        for (int i = 0; i < kWidth; ++i) {
            kept[static_cast<int>(threadIdx.x) * kWidth + i] = sum[i];
        }
    }
    __syncthreads();
    for (int lane = static_cast<int>(threadIdx.x); lane < wide;
         lane += static_cast<int>(kThreads)) {
        const int channel = place.tile * wide + lane;
        if (channel >= tiling.channels) continue;
        float total = 0;
        for (int row = 0; row < tiling.rows; ++row) total += kept[row * wide + lane];
        parts[static_cast<std::int64_t>(place.chunk) * tiling.channels + channel] = total;
    }
}

template <typename T, int kWidth, bool kGated, bool kTwo>
__global__ void __launch_bounds__(kThreads, kBlocksPerProcessor)
    gradient_kernel(const Tiling tiling, const GatedTensors<T> tensors, T* dx, float* parts) {
    using Gradient = GatedGradient<T, kWidth, kGated, kTwo>;
    const Place<kWidth> place(tiling);
    float sum[kWidth] = {};
    place.template walk<kInFlight<T>>(
        tiling.pixels,
        [&](std::int64_t pixel) {
            return Gradient::load(tensors, pixel * tiling.channels + place.channel);
        },
        [&](std::int64_t pixel, const Gradient& loaded) {
            const Pack<kWidth> gradient = loaded.numbers();
            if (dx != nullptr) store(dx + pixel * tiling.channels + place.channel, gradient);
            for (int i = 0; i < kWidth; ++i) sum[i] += gradient.lane[i];
        });
    write_part(tiling, place, sum, parts);
}

constexpr unsigned kWarps = 8;  // of a block that combines parts, a channel each

__global__ void __launch_bounds__(kWarps* kWarp)
    combine_parts_kernel(int parts, const Channels of, const float* from, float* bias_gradient) {
    const int channel = static_cast<int>(blockIdx.x * kWarps + threadIdx.x / kWarp);
    if (channel >= of.channels) return;
    double sum = 0;
    for (int part = static_cast<int>(threadIdx.x % kWarp); part < parts;
         part += static_cast<int>(kWarp)) {
        sum += from[static_cast<std::int64_t>(part) * of.stored + channel];
    }
    sum = reduce_warp(sum, Sum{});
    if (threadIdx.x % kWarp == 0) bias_gradient[channel] = static_cast<float>(sum);
}

Folded folded(const BiasShape& shape) {
    return {shape.dtype, shape.pixels, shape.stored_channels};
}

Channels channels_of(const BiasShape& shape) {
    return {static_cast<int>(shape.channels), static_cast<int>(shape.stored_channels)};
}

}  // namespace

void bias(const BiasShape& shape, const BiasArguments& arguments, Stream stream) {
    const BatchNormShape tiled = folded(shape).shape;
    const Tiling tiling = tiling_of(tiled);
    with_type(shape.dtype, [&]<typename T>() {
        launch(is_wide(tiled) ? bias_kernel<T, kWide> : bias_kernel<T, 1>,
               grid_of(tiled, tiling, stream), tiling, channels_of(shape), arguments);
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
    with_type(shape.dtype, [&]<typename T>() {
        const GatedTensors<T> tensors{static_cast<const T*>(arguments.y),
                                      static_cast<const T*>(arguments.dy0),
                                      static_cast<const T*>(arguments.dy1)};
        with_gradients(is_wide(tiled.shape), arguments.y != nullptr, arguments.dy1 != nullptr,
                       [&]<int kWidth, bool kGated, bool kTwo>() {
                           launch(gradient_kernel<T, kWidth, kGated, kTwo>,
                                  grid_of(tiled.shape, tiling, stream), tiling, tensors,
                                  static_cast<T*>(arguments.dx), parts);
                       });
    });
    launch(combine_parts_kernel,
           Grid{.blocks_x = static_cast<unsigned>(divide_up(shape.channels, kWarps)),
                .threads = kWarps * kWarp,
                .stream = stream},
           static_cast<int>(tiling.chunks * tiled.fold), channels_of(shape), parts,
           arguments.bias_gradient);
}

}  // namespace hpcai::kernels
