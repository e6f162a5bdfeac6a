// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "batch_norm_gradient.cuh"
#include "batch_norm_moments.cuh"
#include "pointwise_norm.hpp"

namespace hpcai::kernels {
namespace {

using namespace batch_norm;

template <typename T>
struct ColumnTensors {
    const T *x, *second;
    const std::uint8_t* mask;
    T* masked;
};

template <typename T, bool kHasSecond, bool kHasMask>
__global__ void __launch_bounds__(kThreads, kBlocksPerProcessor)
    column_sums_kernel(const Tiling tiling, const ColumnTensors<T> tensors, float* workspace) {
    const TileThread<kWide> thread(tiling);
    const std::int64_t channels = tiling.channels;
    struct Element {
        Raw<T, kWide> x, second;
        unsigned bits;
    };
    float sums[1][kWide] = {};
    thread.template for_each_pixel<2 * kInFlight<T>>(
        tiling.pixels,
        [&](std::int64_t pixel) {
            const std::int64_t at = pixel * channels + thread.channel;
            Element element;
            element.x = Raw<T, kWide>::load(tensors.x + at);
            if constexpr (kHasSecond) element.second = Raw<T, kWide>::load(tensors.second + at);
            if constexpr (kHasMask) element.bits = tensors.mask[at / 8];
            return element;
        },
        [&](std::int64_t pixel, const Element& element) {
            Pack<kWide> x = element.x.numbers(), second = {};
            if constexpr (kHasSecond) second = element.second.numbers();
            for (int i = 0; i < kWide; ++i) {
                if constexpr (kHasSecond) x.lane[i] += second.lane[i];
                if constexpr (kHasMask) x.lane[i] = element.bits >> i & 1 ? x.lane[i] : 0;
                x.lane[i] = to_float(from_float<T>(x.lane[i]));
                sums[0][i] += x.lane[i];
            }
            if constexpr (kHasMask) store(tensors.masked + pixel * channels + thread.channel, x);
        });
    write_partial(tiling, thread, sums, workspace);
}

__global__ void __launch_bounds__(kFinalThreads)
    combine_columns_kernel(const Tiling tiling, const float* workspace, double* sums) {
    const int channel = final_channel();
    const Sums combined = combine_partials<1>(tiling, 0, workspace, 0);
    if (threadIdx.x < kFinalChannels && channel < tiling.channels) sums[channel] = combined.first;
}

/// The sum of products of two rows, in fp64; all lanes of a warp get it.
template <typename T>
__device__ double row_product(const float* row, const T* other, std::int64_t count) {
    double sum = 0;
    for (std::int64_t k = threadIdx.x % kWarp; k < count; k += kWarp) {
        sum += static_cast<double>(row[k]) * static_cast<double>(other[k]);
    }
    return reduce_warp(sum, Sum{});
}

/// Finds the matrix element that compensates the rounding error of a bias: the smallest, because it
/// has the finest steps, of those whose column of x has a sum of at least average magnitude.
struct Finest {
    unsigned long long best = ~0ull;  // high half: bits of the magnitude; low half: index

    __device__ void offer(float element, double sum, double average, std::int64_t index) {
        if (!(fabs(sum) >= average) || sum == 0) return;
        const float magnitude = fabsf(element);
        unsigned bits;
        std::memcpy(&bits, &magnitude, sizeof bits);
        const unsigned long long candidate =
            static_cast<unsigned long long>(bits) << 32 | static_cast<unsigned long long>(index);
        best = candidate < best ? candidate : best;
    }
    __device__ bool is_found() const { return best != ~0ull; }
    __device__ std::int64_t index() const { return static_cast<std::int64_t>(best & 0xffffffff); }
};

/// The average magnitude of the sums of x; all lanes of a warp get it.
__device__ inline double average_magnitude(const double* sums, std::int64_t count) {
    double sum = 0;
    for (std::int64_t k = threadIdx.x % kWarp; k < count; k += kWarp) sum += fabs(sums[k]);
    return reduce_warp(sum, Sum{}) / static_cast<double>(count);
}

/// Rounds `bias` to T. If `element` is not null, this matrix element then compensates a finite
/// rounding error. `sum` is that of the element's column of x.
template <typename T>
__device__ T round_bias(double bias, T* element, double sum, double pixels) {
    const T rounded = from_float<T>(static_cast<float>(bias));
    const double error = bias - static_cast<double>(to_float(rounded));
    if (element != nullptr && error - error == 0) {  // finite
        *element = from_float<T>(static_cast<float>(to_float(*element) + error * pixels / sum));
    }
    return rounded;
}

__device__ inline int channel_of_warp() {
    return static_cast<int>(first_item() / kWarp);
}

Grid one_warp_per_channel(const PointwiseShape& shape, Stream stream) {
    constexpr unsigned kBlockThreads = 128;
    return {.blocks_x = divide_up(shape.outputs * kWarp, kBlockThreads),
            .threads = kBlockThreads,
            .stream = stream};
}

template <typename T>
__global__ void pointwise_statistics_kernel(const PointwiseShape shape,
                                            const PointwiseStatisticsArguments args) {
    const int channel = channel_of_warp();
    if (channel >= shape.outputs) return;
    const std::int64_t first = channel * shape.inputs;
    const float* weights = args.weights + first;
    const auto count = static_cast<double>(shape.pixels);
    const Moments moments = moments_of({row_product(weights, args.sums, shape.inputs),
                                        row_product(weights, args.products + first, shape.inputs)},
                                       0, count);
    const bool is_first_lane = threadIdx.x % kWarp == 0;
    if (is_first_lane) {
        write_affine(args.parameters, args.statistics, channel, channel, moments);
        RunningStatistics running(args.parameters, 1, count);
        running.add(moments);
        running.update(channel);
    }
    const double scale = affine_of(args.parameters, channel, moments).scale;
    const double average = average_magnitude(args.sums, shape.inputs);
    T* scaled = static_cast<T*>(args.scaled_weights) + first;
    Finest finest;
    double sum = 0;
    for (std::int64_t k = threadIdx.x % kWarp; k < shape.inputs; k += kWarp) {
        scaled[k] = from_float<T>(static_cast<float>(scale * weights[k]));
        finest.offer(to_float(scaled[k]), args.sums[k], average, k);
        sum += to_float(scaled[k]) * args.sums[k];
    }
    finest.best = reduce_warp(finest.best, Minimum{});
    sum = reduce_warp(sum, Sum{});
    __syncwarp();  // another lane may have written the finest element
    if (!is_first_lane) return;
    T* element = finest.is_found() ? scaled + finest.index() : nullptr;
    static_cast<T*>(args.bias)[channel] =
        round_bias(args.parameters.beta[channel] - sum / count, element,
                   element == nullptr ? 1 : args.sums[finest.index()], count);
}

template <typename T>
__global__ void pointwise_gradients_kernel(const PointwiseShape shape,
                                           const PointwiseGradientArguments args) {
    const int channel = channel_of_warp();
    if (channel >= shape.outputs) return;
    const std::int64_t first = channel * shape.inputs;
    const float *weights = args.weights + first, *gradients = args.gradient_products + first;
    const double inverse = args.statistics.inverse_deviation[channel];
    const float mean = args.statistics.mean[channel];
    const double sum = args.gradient_sums[channel];
    const double products = (row_product(weights, gradients, shape.inputs) - mean * sum) * inverse;
    const auto [a, b, c] = coefficients_of({sum, products}, args.gamma[channel], inverse, mean,
                                           static_cast<double>(shape.pixels));
    if (threadIdx.x % kWarp == 0) {
        args.gamma_gradient[channel] = static_cast<float>(products);
        args.beta_gradient[channel] = static_cast<float>(sum);
        args.slopes[channel] = static_cast<float>(b);
        args.constants[channel] = static_cast<float>(c);
    }
    for (std::int64_t k = threadIdx.x % kWarp; k < shape.inputs; k += kWarp) {
        const std::int64_t at = first + k;
        args.weight_gradient[at] =
            static_cast<float>(a * gradients[k] + b * args.products[at] + c * args.sums[k]);
        static_cast<T*>(args.scaled_weights)[at] =
            from_float<T>(static_cast<float>(a * weights[k]));
        args.y_weights[at] = static_cast<float>(b * weights[k]);
    }
}

constexpr int kFactorRows = 16;  // warps of a block, which share the rows of a matrix

/// The power of two, from 2^-100 to 2^100, that brings the largest |b| or |c| closest to [0.5, 1);
/// 1 if the largest is 0 or not finite. All threads must call this.
__device__ inline float factor_of(const PointwiseShape& shape,
                                  const PointwiseFactorsArguments& args) {
    float largest = 0;
    for (std::int64_t c = threadIdx.x; c < shape.outputs; c += blockDim.x) {
        largest = fmaxf(largest, fmaxf(fabsf(args.slopes[c]), fabsf(args.constants[c])));
    }
    largest = reduce_block(largest, 0.0f, Maximum{});
    constexpr int kMaxExponent = 100;  // so that the factor and its inverse are normal numbers
    int exponent = largest > 0 && largest < INFINITY ? ilogbf(largest) + 1 : 0;
    if (exponent > kMaxExponent) exponent = kMaxExponent;
    if (exponent < -kMaxExponent) exponent = -kMaxExponent;
    return ldexpf(1, -exponent);
}

/// Lanes of equal index in the warps of a block share a column of the matrices.
template <typename T>
__global__ void __launch_bounds__(kFactorRows* kWarp)
    pointwise_factors_kernel(const PointwiseShape shape, const PointwiseFactorsArguments args) {
    __shared__ double sums[kFactorRows][kWarp];
    __shared__ unsigned long long all_finest[kFactorRows][kWarp];
    const float factor = factor_of(shape, args);
    const double average = average_magnitude(args.sums, shape.inputs);
    const int row = static_cast<int>(threadIdx.x / kWarp);
    const int lane = static_cast<int>(threadIdx.x % kWarp);
    const std::int64_t k = static_cast<std::int64_t>(blockIdx.x) * kWarp + lane;
    const bool is_inside = k < shape.inputs;
    auto* square = static_cast<T*>(args.rounded_square);
    Finest finest;
    double sum = 0;
    for (std::int64_t j = row; is_inside && j < shape.inputs; j += kFactorRows) {
        const std::int64_t at = j * shape.inputs + k;
        square[at] = from_float<T>(factor * args.square[at]);
        finest.offer(to_float(square[at]), args.sums[j], average, j);
        sum += to_float(square[at]) * args.sums[j];
    }
    const T* scaled_weights = static_cast<const T*>(args.scaled_weights);
#pragma unroll 4
    for (std::int64_t c = row; is_inside && c < shape.outputs; c += kFactorRows) {
        sum += static_cast<double>(factor * to_float(scaled_weights[c * shape.inputs + k])) *
               args.gradient_sums[c];
    }
    sums[row][lane] = sum;
    all_finest[row][lane] = finest.best;
    __syncthreads();
    if (row > 0 || !is_inside) return;
    for (int other = 1; other < kFactorRows; ++other) {
        sum += sums[other][lane];
        finest.best = Minimum{}(finest.best, all_finest[other][lane]);
    }
    const auto pixels = static_cast<double>(shape.pixels);
    T* element = finest.is_found() ? square + finest.index() * shape.inputs + k : nullptr;
    static_cast<T*>(args.bias)[k] = round_bias(
        -sum / pixels, element, element == nullptr ? 1 : args.sums[finest.index()], pixels);
    if (k > 0) return;
    args.factors[0] = 1;
    args.factors[1] = 1 / factor;
}

}  // namespace

void column_sums(const BatchNormShape& shape, const ColumnSumsArguments& args, Stream stream) {
    if (shape.spans != 1 || !is_wide(shape))
        fail("column sums require one span and a multiple of 8 channels");
    const Tiling tiling = tiling_of(shape);
    auto* workspace = static_cast<float*>(args.workspace);
    with_type(shape.dtype, [&]<typename T>() {
        const auto kernel = args.mask == nullptr     ? column_sums_kernel<T, false, false>
                            : args.second == nullptr ? column_sums_kernel<T, false, true>
                                                     : column_sums_kernel<T, true, true>;
        launch(kernel, grid_of(shape, tiling, stream), tiling,
               ColumnTensors<T>{static_cast<const T*>(args.x), static_cast<const T*>(args.second),
                                reinterpret_cast<const std::uint8_t*>(args.mask),
                                static_cast<T*>(args.masked)},
               workspace);
    });
    launch(combine_columns_kernel, final_grid(shape.channels, stream), tiling, workspace,
           args.sums);
}

void pointwise_statistics(const PointwiseShape& shape, const PointwiseStatisticsArguments& args,
                          Stream stream) {
    with_type(shape.dtype, [&]<typename T>() {
        launch(pointwise_statistics_kernel<T>, one_warp_per_channel(shape, stream), shape, args);
    });
}

void pointwise_gradients(const PointwiseShape& shape, const PointwiseGradientArguments& args,
                         Stream stream) {
    with_type(shape.dtype, [&]<typename T>() {
        launch(pointwise_gradients_kernel<T>, one_warp_per_channel(shape, stream), shape, args);
    });
}

void pointwise_factors(const PointwiseShape& shape, const PointwiseFactorsArguments& args,
                       Stream stream) {
    const Grid grid{.blocks_x = divide_up(shape.inputs, kWarp),
                    .threads = kFactorRows * kWarp,
                    .stream = stream};
    with_type(shape.dtype,
              [&]<typename T>() { launch(pointwise_factors_kernel<T>, grid, shape, args); });
}

}  // namespace hpcai::kernels
