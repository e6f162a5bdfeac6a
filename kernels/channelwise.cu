// SPDX-License-Identifier: Apache-2.0
// Operations with one parameter per channel, for any number of channels.
#include <numeric>

#include "batch_norm_tiles.cuh"
#include "elementwise.hpp"

namespace hpcai::kernels {
namespace {

using namespace batch_norm;

/// Treats `fold` adjacent pixels as one, so that their channels together fill 16-byte vectors.
/// Pixels stay separate (fold 1) if their number is not a multiple of the required `fold`.
struct Folded {
    BatchNormShape shape;   // one span
    std::int64_t fold = 1;  // pixels combined into one

    Folded(tensor::DType dtype, std::int64_t pixels, std::int64_t channels) {
        const std::int64_t pixels_per_vector = std::lcm(channels, std::int64_t{kWide}) / channels;
        if (pixels % pixels_per_vector == 0) fold = pixels_per_vector;
        shape = {dtype, 1, pixels / fold, channels * fold};
    }
};

/// The output of an operation that may end with a ReLU, and its gradient, which is dy0 + dy1.
template <typename T>
struct GatedTensors {
    const T *y, *dy0, *dy1;
};

/// The gradient of kWidth elements before the ReLU. kGated: there is a ReLU.
template <typename T, int kWidth, bool kGated, bool kHasDy1>
struct GatedGradient {
    using Elements = Raw<T, kWidth>;
    Elements y, dy0, dy1;

    __device__ static GatedGradient load(const GatedTensors<T>& from, std::int64_t at) {
        GatedGradient loaded;
        if constexpr (kGated) loaded.y = Elements::load(from.y + at);
        loaded.dy0 = Elements::load(from.dy0 + at);
        if constexpr (kHasDy1) loaded.dy1 = Elements::load(from.dy1 + at);
        return loaded;
    }
    __device__ Pack<kWidth> numbers() const {
        Pack<kWidth> result = dy0.numbers();
        if constexpr (kHasDy1) {
            const Pack<kWidth> second = dy1.numbers();
            for (int i = 0; i < kWidth; ++i) result.lane[i] += second.lane[i];
        }
        if constexpr (kGated) {
            const Pack<kWidth> output = y.numbers();
            for (int i = 0; i < kWidth; ++i) {
                if (output.lane[i] <= 0) result.lane[i] = 0;
            }
        }
        return result;
    }
};

/// Calls `body` with the tensors y, dy0 and dy1 of `arguments`. The template arguments of `body`
/// are the element type, the width, whether there is a ReLU and whether there is dy1.
template <typename Arguments, typename Body>
void with_gradients(const BatchNormShape& shape, const Arguments& arguments, const Body& body) {
    with_type(shape.dtype, [&]<typename T>() {
        const GatedTensors<T> tensors{static_cast<const T*>(arguments.y),
                                      static_cast<const T*>(arguments.dy0),
                                      static_cast<const T*>(arguments.dy1)};
        const bool gated = arguments.y != nullptr, has_dy1 = arguments.dy1 != nullptr;
        const auto with_width = [&]<int kWidth>() {
            if (gated && has_dy1) return body.template operator()<T, kWidth, true, true>(tensors);
            if (gated) return body.template operator()<T, kWidth, true, false>(tensors);
            if (has_dy1) return body.template operator()<T, kWidth, false, true>(tensors);
            body.template operator()<T, kWidth, false, false>(tensors);
        };
        is_wide(shape) ? with_width.template operator()<kWide>()
                       : with_width.template operator()<1>();
    });
}

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
    bias_gradient_kernel(const Tiling tiling, const GatedTensors<T> tensors, T* dx, float* parts) {
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
    combine_parts_kernel(int part_count, const ChannelCounts counts, const float* from,
                         float* bias_gradient) {
    const int channel = static_cast<int>(blockIdx.x * kWarps + threadIdx.x / kWarp);
    if (channel >= counts.channels) return;
    double sum = 0;
    for (int part = static_cast<int>(threadIdx.x % kWarp); part < part_count;
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

template <typename T, int kWidth, bool kGated, bool kHasDy1>
__global__ void __launch_bounds__(kThreads, kBlocksPerProcessor)
    frozen_norm_gradient_kernel(const Tiling tiling, const GatedTensors<T> tensors,
                                const FrozenNormGradientArguments arguments, int channels) {
    using Gradient = GatedGradient<T, kWidth, kGated, kHasDy1>;
    const TileThread<kWidth> thread(tiling);
    if (!thread.is_active) return;
    Pack<kWidth> scale;
    for (int i = 0; i < kWidth; ++i) {
        scale.lane[i] = arguments.scale[(thread.channel + i) % channels];
    }
    T* dx = static_cast<T*>(arguments.dx);
    T* residual_gradient = static_cast<T*>(arguments.residual_gradient);
    thread.template for_each_pixel<kInFlight<T>>(
        tiling.pixels,
        [&](std::int64_t pixel) {
            return Gradient::load(tensors, pixel * tiling.channels + thread.channel);
        },
        [&](std::int64_t pixel, const Gradient& loaded) {
            const std::int64_t at = pixel * tiling.channels + thread.channel;
            Pack<kWidth> gradient = loaded.numbers();
            if (residual_gradient != nullptr) store(residual_gradient + at, gradient);
            if (dx == nullptr) return;
            for (int i = 0; i < kWidth; ++i) gradient.lane[i] *= scale.lane[i];
            store(dx + at, gradient);
        });
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
                       launch(bias_gradient_kernel<T, kWidth, kGated, kHasDy1>,
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

void frozen_norm_gradient(const BatchNormShape& shape, const FrozenNormGradientArguments& arguments,
                          Stream stream) {
    const BatchNormShape tiled = Folded(shape.dtype, shape.pixels, shape.channels).shape;
    const Tiling tiling = tiling_of(tiled);
    with_gradients(tiled, arguments,
                   [&]<typename T, int kWidth, bool kGated, bool kHasDy1>(const auto& tensors) {
                       launch(frozen_norm_gradient_kernel<T, kWidth, kGated, kHasDy1>,
                              grid_of(tiled, tiling, stream), tiling, tensors, arguments,
                              static_cast<int>(shape.channels));
                   });
}

}  // namespace hpcai::kernels
