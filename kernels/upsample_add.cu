// SPDX-License-Identifier: Apache-2.0
#include "elements.cuh"
#include "elementwise.hpp"

namespace hpcai::kernels {
namespace {

constexpr unsigned kRowThreads = 256;
constexpr int kBlocksPerProcessor = 4;

/// The first item of a thread in its row, and the distance to the next one.
__device__ inline unsigned first_of_row() {
    return blockIdx.y * kRowThreads + threadIdx.x;
}
__device__ inline unsigned row_stride() {
    return gridDim.y * kRowThreads;
}

/// The coarse index that a fine index reads, along one axis.
__device__ inline unsigned coarse_index(unsigned at, int fine, int coarse) {
    return at * static_cast<unsigned>(coarse) / static_cast<unsigned>(fine);
}
/// The first fine index that reads coarse index `at` or a later one.
__device__ inline unsigned first_fine(unsigned at, int fine, int coarse) {
    const auto coarse_side = static_cast<unsigned>(coarse);
    return (at * static_cast<unsigned>(fine) + coarse_side - 1) / coarse_side;
}

/// One or more blocks for each row of the fine image.
template <int N, typename T>
__global__ void __launch_bounds__(kRowThreads, kBlocksPerProcessor)
    add_kernel(const UpsampleShape shape, const T* fine, const T* coarse, T* y) {
    const auto height = static_cast<unsigned>(shape.height);
    const std::int64_t image = blockIdx.x / height, channels = shape.channels;
    const unsigned row = coarse_index(blockIdx.x % height, shape.height, shape.coarse_height);
    const std::int64_t first = blockIdx.x * shape.width * channels;
    const T* from = coarse + (image * shape.coarse_height + row) * shape.coarse_width * channels;
    const unsigned vectors = static_cast<unsigned>(shape.channels / N);
    const unsigned items = static_cast<unsigned>(shape.width) * vectors;
    for (unsigned item = first_of_row(); item < items; item += row_stride()) {
        const unsigned column = item / vectors, vector = item - column * vectors;
        const unsigned coarse_column = coarse_index(column, shape.width, shape.coarse_width);
        const std::int64_t at = first + static_cast<std::int64_t>(item) * N;
        Pack<N> sum = load<N>(fine + at);
        const Pack<N> other = load<N>(from + coarse_column * channels + vector * N);
        for (int i = 0; i < N; ++i) sum.lane[i] += other.lane[i];
        store(y + at, sum);
    }
}

template <typename T>
struct GradientTensors {
    const T *dy0, *dy1;
    T *fine, *coarse;
};

/// Writes the gradient of one fine pixel if it is wanted, and returns it.
template <int N, bool kHasDy1, typename T>
__device__ Pack<N> fine_gradient(const GradientTensors<T>& tensors, std::int64_t at) {
    Pack<N> gradient = load<N>(tensors.dy0 + at);
    if constexpr (kHasDy1) {
        const Pack<N> second = load<N>(tensors.dy1 + at);
        for (int i = 0; i < N; ++i) gradient.lane[i] += second.lane[i];
    }
    if (tensors.fine != nullptr) store(tensors.fine + at, gradient);
    return gradient;
}

/// At least one block per coarse row. A fine pixel reads one coarse pixel, so it is visited once.
template <int N, bool kHasDy1, typename T>
__global__ void __launch_bounds__(kRowThreads, kBlocksPerProcessor)
    gradient_kernel(const UpsampleShape shape, const GradientTensors<T> tensors) {
    const auto coarse_height = static_cast<unsigned>(shape.coarse_height);
    const unsigned row = blockIdx.x % coarse_height;
    const std::int64_t image = blockIdx.x / coarse_height, channels = shape.channels;
    const unsigned top = first_fine(row, shape.height, shape.coarse_height);
    const unsigned bottom = first_fine(row + 1, shape.height, shape.coarse_height);
    const unsigned vectors = static_cast<unsigned>(shape.channels / N);
    const unsigned items = static_cast<unsigned>(shape.coarse_width) * vectors;
    for (unsigned item = first_of_row(); item < items; item += row_stride()) {
        const unsigned column = item / vectors, vector = item - column * vectors;
        const unsigned left = first_fine(column, shape.width, shape.coarse_width);
        const unsigned right = first_fine(column + 1, shape.width, shape.coarse_width);
        Pack<N> sum = {};
        for (unsigned i = top; i < bottom; ++i) {
            const std::int64_t pixels = (image * shape.height + i) * shape.width;
#pragma unroll 2  // more would spill registers
            for (unsigned j = left; j < right; ++j) {
                const Pack<N> gradient =
                    fine_gradient<N, kHasDy1>(tensors, (pixels + j) * channels + vector * N);
                for (int lane = 0; lane < N; ++lane) sum.lane[lane] += gradient.lane[lane];
            }
        }
        if (tensors.coarse == nullptr) continue;
        const std::int64_t first = blockIdx.x * shape.coarse_width * channels;
        store(tensors.coarse + first + static_cast<std::int64_t>(item) * N, sum);
    }
}

Grid grid_over_rows(std::int64_t rows, std::int64_t items, Stream stream) {
    constexpr std::int64_t kItemsPerThread = 2;
    constexpr std::int64_t kMaxBlocks = 65535;
    const std::int64_t blocks = divide_up(items, kItemsPerThread * kRowThreads);
    return {.blocks_x = rows,
            .blocks_y = std::clamp<std::int64_t>(blocks, 1, kMaxBlocks),
            .threads = kRowThreads,
            .stream = stream};
}

void check_sides(const UpsampleShape& shape) {
    for (const int side : {shape.height, shape.width, shape.coarse_height, shape.coarse_width}) {
        if (side < 1 || side > 32768) fail("upsample_add: expected sides of 1 to 32768 pixels");
    }
}

}  // namespace

void upsample_add(const UpsampleShape& shape, const void* fine, const void* coarse, void* y,
                  Stream stream) {
    check_sides(shape);
    with_vectors(shape.dtype, shape.channels, [&]<typename T, int N>() {
        const std::int64_t items = shape.width * shape.channels / N;
        launch(add_kernel<N, T>, grid_over_rows(shape.images * shape.height, items, stream), shape,
               static_cast<const T*>(fine), static_cast<const T*>(coarse), static_cast<T*>(y));
    });
}

void upsample_add_gradient(const UpsampleShape& shape,
                           const UpsampleAddGradientArguments& arguments, Stream stream) {
    check_sides(shape);
    with_vectors(shape.dtype, shape.channels, [&]<typename T, int N>() {
        const std::int64_t items = shape.coarse_width * shape.channels / N;
        const GradientTensors<T> tensors{
            static_cast<const T*>(arguments.dy0), static_cast<const T*>(arguments.dy1),
            static_cast<T*>(arguments.fine_gradient), static_cast<T*>(arguments.coarse_gradient)};
        launch(
            arguments.dy1 != nullptr ? gradient_kernel<N, true, T> : gradient_kernel<N, false, T>,
            grid_over_rows(shape.images * shape.coarse_height, items, stream), shape, tensors);
    });
}

}  // namespace hpcai::kernels
