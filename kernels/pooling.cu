// SPDX-License-Identifier: Apache-2.0
#include "batch_norm_gradient.cuh"
#include "pool_maxima.cuh"
#include "pooling.hpp"

namespace hpcai::kernels {
namespace {

using batch_norm::InputGradient;

constexpr unsigned kRowThreads = 128;

/// The positions of N maxima, one byte each, read or written in one access.
template <int N>
struct Winners {
    using Word = std::conditional_t<N == 1, std::uint8_t, std::uint32_t>;
    alignas(N) Word word[(N + 3) / 4] = {};
};

template <int N>
__device__ Winners<N> load_winners(const std::uint8_t* from) {
    return *reinterpret_cast<const Winners<N>*>(from);
}
template <int N>
__device__ int winner_of(const Winners<N>& winners, int lane) {
    return static_cast<int>(winners.word[lane / 4] >> lane % 4 * 8 & 0xff);
}

__device__ inline int clamped(int value, int low, int high) {
    return value < low ? low : value > high ? high : value;
}

/// Finds the maximum of the window whose first pixel is (top, left), which may be outside the
/// image. `image` points to the first of the N channels. If Kernel is not 0, loads a row of the
/// window before comparing, to hide latency.
template <int N, int Kernel, bool kNorm, typename T>
__device__ Best<T, N> pool_window(const PoolShape& shape, const T* image, int top, int left,
                                  const Signs<T, N, kNorm>& signs) {
    constexpr int kUnroll = Kernel > 0 ? Kernel : 1;
    const int kernel = Kernel > 0 ? Kernel : shape.kernel;
    // Initially the first pixel of the window inside the image is the maximum.
    Best<T, N> best(clamped(-top, 0, kernel) * kernel + clamped(-left, 0, kernel));
#pragma unroll kUnroll
    for (int r = 0; r < kernel; ++r) {
        const int h = top + r;
        const std::int64_t row =
            static_cast<std::int64_t>(clamped(h, 0, shape.height - 1)) * shape.width;
        for (int s = 0; s < kernel; s += kUnroll) {
            Words<T, N> value[kUnroll];
            for (int i = 0; i < kUnroll; ++i) {
                const int w = clamped(left + s + i, 0, shape.width - 1);
                value[i] = Words<T, N>::load(image + (row + w) * shape.channels);
                signs.apply(value[i]);
            }
            for (int i = 0; i < kUnroll; ++i) {
                const int w = left + s + i;
                const bool is_inside = h >= 0 && h < shape.height && w >= 0 && w < shape.width;
                if (is_inside) best.update(value[i], r * kernel + s + i);
            }
        }
    }
    signs.apply(best.maximum());
    return best;
}

/// One block for each row of y. Without a norm, only x, y and winner are used.
template <int N, int Kernel, bool kNorm, typename T>
__global__ void max_pool_kernel(const PoolShape shape, const BatchNormPoolArguments args) {
    const int p = static_cast<int>(blockIdx.x % static_cast<unsigned>(shape.output_height));
    const std::int64_t image = blockIdx.x / static_cast<unsigned>(shape.output_height);
    const int vectors = shape.channels / N, items = shape.output_width * vectors;
    const T* from =
        static_cast<const T*>(args.x) + image * shape.height * shape.width * shape.channels;
    const std::int64_t row =
        static_cast<std::int64_t>(blockIdx.x) * shape.output_width * shape.channels;
    for (int item = static_cast<int>(threadIdx.x); item < items; item += kRowThreads) {
        const int q = item / vectors, channel = (item - q * vectors) * N;
        const Signs<T, N, kNorm> signs(args.statistics.scale, channel);
        Best<T, N> best =
            pool_window<N, Kernel, kNorm>(shape, from + channel, p * shape.stride - shape.padding,
                                          q * shape.stride - shape.padding, signs);
        const std::int64_t at = row + static_cast<std::int64_t>(item) * N;
        Pack<N> y = best.maximum().numbers();
        if constexpr (kNorm) {
            store(static_cast<T*>(args.winner_x) + at, y);
            const auto scale = load<N>(args.statistics.scale + channel);
            const auto shift = load<N>(args.statistics.shift + channel);
            for (int i = 0; i < N; ++i) {
                y.lane[i] = fmaf(y.lane[i], scale.lane[i], shift.lane[i]);
            }
        }
        Winners<N> packed;
        for (int lane = 0; lane < N; ++lane) {
            float& value = y.lane[lane];
            // Gate::affine has the same condition, so that the gradient sums agree with dx.
            const int position = kNorm && !(value > 0) ? 255 : best.position(lane);
            packed.word[lane / 4] |=
                static_cast<typename Winners<N>::Word>(position << lane % 4 * 8);
            if (kNorm && value < 0) value = 0;
        }
        store(static_cast<T*>(args.y) + at, y);
        if (args.winner == nullptr) continue;
        *reinterpret_cast<Winners<N>*>(args.winner + at) = packed;
    }
}

/// The first and last window over a pixel of an axis; window p begins at p * stride - padding.
struct Windows {
    int first, last;
};
__device__ inline Windows windows_over(int at, int kernel, int stride, int padding, int outputs) {
    const int past = at + padding - kernel + stride;
    return {past < 0 ? 0 : past / stride, clamped((at + padding) / stride, 0, outputs - 1)};
}

template <int N, bool kHasDy1, typename T>
__device__ Pack<N> gradient_at(const MaxPoolGradientArguments& args, std::int64_t at) {
    Pack<N> sum = load<N>(static_cast<const T*>(args.dy0) + at);
    if constexpr (kHasDy1) {
        const Pack<N> second = load<N>(static_cast<const T*>(args.dy1) + at);
        for (int lane = 0; lane < N; ++lane) sum.lane[lane] += second.lane[lane];
    }
    return sum;
}

/// Adds the gradient of a window in the channels whose maximum is at `position` in the window.
template <int N>
__device__ void gather(const Winners<N>& winners, const Pack<N>& gradient, int position,
                       Pack<N>& sum) {
    for (int lane = 0; lane < N; ++lane) {
        sum.lane[lane] += winner_of(winners, lane) == position ? gradient.lane[lane] : 0.0f;
    }
}

/// One block for each row of dx. Every pixel gathers from the windows that cover it, so the order
/// of summation is fixed.
template <int N, bool kHasDy1, typename T>
__global__ void max_pool_gradient_kernel(PoolShape shape, MaxPoolGradientArguments args) {
    const int kernel = shape.kernel, stride = shape.stride;
    const int h = static_cast<int>(blockIdx.x % static_cast<unsigned>(shape.height));
    const std::int64_t image = blockIdx.x / static_cast<unsigned>(shape.height);
    const int vectors = shape.channels / N, items = shape.width * vectors;
    const Windows rows = windows_over(h, kernel, stride, shape.padding, shape.output_height);
    T* dx = static_cast<T*>(args.dx) +
            static_cast<std::int64_t>(blockIdx.x) * shape.width * shape.channels;
    for (int item = static_cast<int>(threadIdx.x); item < items; item += kRowThreads) {
        const int w = item / vectors, channel = (item - w * vectors) * N;
        const Windows columns = windows_over(w, kernel, stride, shape.padding, shape.output_width);
        Pack<N> sum{};
        for (int p = rows.first; p <= rows.last; ++p) {
            const int row_position = (h + shape.padding - p * stride) * kernel;
            for (int q = columns.first; q <= columns.last; ++q) {
                const std::int64_t at =
                    ((image * shape.output_height + p) * shape.output_width + q) * shape.channels +
                    channel;
                gather(load_winners<N>(args.winner + at), gradient_at<N, kHasDy1, T>(args, at),
                       row_position + w + shape.padding - q * stride, sum);
            }
        }
        store(dx + static_cast<std::int64_t>(item) * N, sum);
    }
}

/// For windows of 3 x 3, stride 2, padding 1: a thread computes pixels (2i, 2j) to (2i+1, 2j+1),
/// which windows (i, j) to (i+1, j+1) cover, so that each window is read once for four pixels. With
/// a norm, dx is the gradient of the norm's `x`.
template <int N, bool kHasDy1, bool kNorm, typename T>
__global__ void max_pool_gradient_patch_kernel(PoolShape shape, MaxPoolGradientArguments args,
                                               const T* x, const float* coefficients) {
    const int i = static_cast<int>(blockIdx.x % static_cast<unsigned>(shape.output_height));
    const std::int64_t image = blockIdx.x / static_cast<unsigned>(shape.output_height);
    const int vectors = shape.channels / N, items = shape.output_width * vectors;
    for (int item = static_cast<int>(threadIdx.x); item < items; item += kRowThreads) {
        const int j = item / vectors, channel = (item - j * vectors) * N;
        Winners<N> winners[2][2];
        Pack<N> gradient[2][2], sum[2][2] = {};
        Raw<T, N> pixels[2][2];
        const auto element = [&](int h, int w) {
            return ((image * shape.height + h) * shape.width + w) * shape.channels + channel;
        };
#pragma unroll
        for (int dp = 0; dp < 2; ++dp) {
#pragma unroll
            for (int dq = 0; dq < 2; ++dq) {
                const int p = clamped(i + dp, 0, shape.output_height - 1);
                const int q = clamped(j + dq, 0, shape.output_width - 1);
                const std::int64_t at =
                    ((image * shape.output_height + p) * shape.output_width + q) * shape.channels +
                    channel;
                winners[dp][dq] = load_winners<N>(args.winner + at);
                gradient[dp][dq] = gradient_at<N, kHasDy1, T>(args, at);
                if constexpr (kNorm) {
                    const int h = clamped(2 * i + dp, 0, shape.height - 1);
                    const int w = clamped(2 * j + dq, 0, shape.width - 1);
                    pixels[dp][dq] = Raw<T, N>::load(x + element(h, w));
                }
                // Beyond the border there is no window: 255 is the position of no pixel.
                for (auto& word : winners[dp][dq].word) {
                    if (p != i + dp || q != j + dq)
                        word = static_cast<typename Winners<N>::Word>(-1);
                }
            }
        }
#pragma unroll
        for (int dp = 0; dp < 2; ++dp) {
#pragma unroll
            for (int dq = 0; dq < 2; ++dq) {
#pragma unroll
                for (int pixel = 0; pixel < 4; ++pixel) {
                    const int row = pixel / 2, column = pixel % 2;
                    if (row >= dp && column >= dq) {
                        const int position = (row + 1 - 2 * dp) * 3 + column + 1 - 2 * dq;
                        gather(winners[dp][dq], gradient[dp][dq], position, sum[row][column]);
                    }
                }
            }
        }
        if constexpr (kNorm) {
            const InputGradient<N> input_gradient(coefficients + channel, shape.channels);
            for (int pixel = 0; pixel < 4; ++pixel) {
                Pack<N>& g = sum[pixel / 2][pixel % 2];
                g = input_gradient(g, pixels[pixel / 2][pixel % 2].numbers());
            }
        }
        for (int row = 0; row < 2; ++row) {
            for (int column = 0; column < 2; ++column) {
                const int h = 2 * i + row, w = 2 * j + column;
                if (h < shape.height && w < shape.width)
                    store(static_cast<T*>(args.dx) + element(h, w), sum[row][column]);
            }
        }
    }
}

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

Grid one_block_per(std::int64_t rows, Stream stream) {
    if (rows < 1 || rows > 0x7fffffff) fail("pooling: expected 1 to 2^31 - 1 rows of pixels");
    return {.blocks_x = rows, .threads = kRowThreads, .stream = stream};
}

bool has_patches(const PoolShape& shape) {
    return shape.kernel == 3 && shape.stride == 2 && shape.padding == 1;
}

Grid norm_grid(const PoolShape& shape, Stream stream) {
    if (!has_patches(shape) || shape.channels % 8 != 0) {
        fail(
            "a norm is fused with pooling only in windows of 3 x 3, stride 2, padding 1, and a "
            "multiple of 8 channels");
    }
    return one_block_per(shape.images * shape.output_height, stream);
}

void check(const PoolShape& shape) {
    if (shape.kernel < 1 || shape.kernel > 16 || shape.padding >= shape.kernel) {
        fail("max_pool: the window is outside the limits of PoolShape");
    }
}

}  // namespace

void max_pool(const PoolShape& shape, const void* x, void* y, std::uint8_t* winner, Stream stream) {
    check(shape);
    const Grid grid = one_block_per(shape.images * shape.output_height, stream);
    with_vectors(shape.dtype, shape.channels, [&]<typename T, int N>() {
        launch(
            shape.kernel == 3 ? max_pool_kernel<N, 3, false, T> : max_pool_kernel<N, 0, false, T>,
            grid, shape, BatchNormPoolArguments{.x = x, .y = y, .winner = winner});
    });
}

void max_pool_gradient(const PoolShape& shape, const MaxPoolGradientArguments& arguments,
                       Stream stream) {
    check(shape);
    const bool patches = has_patches(shape);
    const int rows = patches ? shape.output_height : shape.height;
    const Grid grid = one_block_per(shape.images * rows, stream);
    with_vectors(shape.dtype, shape.channels, [&]<typename T, int N>() {
        const auto run = [&]<bool kHasDy1>() {
            if (!patches)
                return launch(max_pool_gradient_kernel<N, kHasDy1, T>, grid, shape, arguments);
            launch(max_pool_gradient_patch_kernel<N, kHasDy1, false, T>, grid, shape, arguments,
                   nullptr, nullptr);
        };
        arguments.dy1 != nullptr ? run.template operator()<true>()
                                 : run.template operator()<false>();
    });
}

void batch_norm_pool(const PoolShape& shape, const BatchNormPoolArguments& arguments,
                     Stream stream) {
    const Grid grid = norm_grid(shape, stream);
    with_type(shape.dtype, [&]<typename T>() {
        launch(max_pool_kernel<kLanes<T>, 3, true, T>, grid, shape, arguments);
    });
}

void batch_norm_pool_gradient(const PoolShape& shape,
                              const BatchNormPoolGradientArguments& arguments, Stream stream) {
    const Grid grid = norm_grid(shape, stream);
    const BatchNormShape windows{.dtype = shape.dtype,
                                 .pixels = shape.images * shape.output_height * shape.output_width,
                                 .channels = shape.channels};
    BatchNormGradientArguments norm = arguments.norm;
    norm.relu = true;
    norm.statistics_pixels = shape.images * shape.height * shape.width;
    batch_norm_gradient_sums(windows, norm, stream);
    if (norm.dx == nullptr) return;
    const float* coefficients =
        static_cast<const float*>(norm.workspace) + batch_norm::partial_floats(windows);
    const MaxPoolGradientArguments pool{arguments.winner, norm.dy0, norm.dy1, norm.dx};
    with_type(shape.dtype, [&]<typename T>() {
        launch(norm.dy1 != nullptr ? max_pool_gradient_patch_kernel<kLanes<T>, true, true, T>
                                   : max_pool_gradient_patch_kernel<kLanes<T>, false, true, T>,
               grid, shape, pool, static_cast<const T*>(arguments.x), coefficients);
    });
}

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
