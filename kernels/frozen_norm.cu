// SPDX-License-Identifier: Apache-2.0
#include "batch_norm.hpp"
#include "folded.cuh"

namespace hpcai::kernels {
namespace {

using namespace batch_norm;

template <typename T, int kWidth, bool kGated, bool kHasDy1>
__global__ void __launch_bounds__(kThreads, kBlocksPerProcessor)
    gradient_kernel(const Tiling tiling, const GatedTensors<T> tensors,
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

void frozen_norm_gradient(const BatchNormShape& shape, const FrozenNormGradientArguments& arguments,
                          Stream stream) {
    const BatchNormShape tiled = Folded(shape.dtype, shape.pixels, shape.channels).shape;
    const Tiling tiling = tiling_of(tiled);
    with_gradients(tiled, arguments,
                   [&]<typename T, int kWidth, bool kGated, bool kHasDy1>(const auto& tensors) {
                       launch(gradient_kernel<T, kWidth, kGated, kHasDy1>,
                              grid_of(tiled, tiling, stream), tiling, tensors, arguments,
                              static_cast<int>(shape.channels));
                   });
}

}  // namespace hpcai::kernels
