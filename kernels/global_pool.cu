// SPDX-License-Identifier: Apache-2.0
#include "elements.cuh"
#include "pooling.hpp"

namespace hpcai::kernels {
namespace {

template <int N, typename T>
__global__ void global_average_pool_kernel(GlobalPoolShape shape, const T* x, T* y, float scale) {
    const std::int64_t vectors = shape.channels / N, items = shape.images * vectors;
    for (std::int64_t item = first_item(); item < items; item += item_stride()) {
        const std::int64_t image = item / vectors, channel = (item - image * vectors) * N;
        const T* from = x + image * shape.pixels * shape.channels + channel;
        Pack<N> sum{};
        for (std::int64_t pixel = 0; pixel < shape.pixels; ++pixel) {
            const Pack<N> value = load<N>(from + pixel * shape.channels);
            for (int lane = 0; lane < N; ++lane) sum.lane[lane] += value.lane[lane];
        }
        for (int lane = 0; lane < N; ++lane) sum.lane[lane] *= scale;
        store(y + image * shape.channels + channel, sum);
    }
}

template <int N, typename T>
__global__ void global_average_pool_gradient_kernel(GlobalPoolShape shape, const T* dy, T* dx,
                                                    float scale) {
    const std::int64_t vectors = shape.channels / N, items = shape.images * vectors;
    for (std::int64_t item = first_item(); item < items; item += item_stride()) {
        const std::int64_t image = item / vectors, channel = (item - image * vectors) * N;
        Pack<N> value = load<N>(dy + image * shape.channels + channel);
        for (int lane = 0; lane < N; ++lane) value.lane[lane] *= scale;
        T* to = dx + image * shape.pixels * shape.channels + channel;
        for (std::int64_t pixel = 0; pixel < shape.pixels; ++pixel) {
            store(to + pixel * shape.channels, value);
        }
    }
}

}  // namespace

void global_average_pool(const GlobalPoolShape& shape, const void* x, void* y, Stream stream) {
    with_vectors(shape.dtype, shape.channels, [&]<typename T, int N>() {
        launch(global_average_pool_kernel<N, T>,
               grid_over(shape.images * shape.channels / N, stream), shape,
               static_cast<const T*>(x), static_cast<T*>(y),
               1.0f / static_cast<float>(shape.pixels));
    });
}

void global_average_pool_gradient(const GlobalPoolShape& shape, const void* dy, void* dx,
                                  Stream stream) {
    with_vectors(shape.dtype, shape.channels, [&]<typename T, int N>() {
        launch(global_average_pool_gradient_kernel<N, T>,
               grid_over(shape.images * shape.channels / N, stream), shape,
               static_cast<const T*>(dy), static_cast<T*>(dx),
               1.0f / static_cast<float>(shape.pixels));
    });
}

}  // namespace hpcai::kernels
