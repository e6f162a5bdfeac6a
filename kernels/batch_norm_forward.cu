// SPDX-License-Identifier: Apache-2.0
#include "batch_norm.hpp"
#include "batch_norm_moments.cuh"

namespace hpcai::kernels {
namespace {

using namespace batch_norm;

template <typename T, int kWidth>
__global__ void __launch_bounds__(kThreads, kBlocksPerProcessor)
    sum_kernel(const Tiling tiling, const T* x, float* workspace, float* pivots) {
    const TileThread<kWidth> thread(tiling);
    const std::int64_t channels = tiling.channels;
    const std::int64_t span = blockIdx.y;
    const T* from = x + span * tiling.pixels * channels + thread.channel;
    float sums[2][kWidth] = {};  // of differences and of their squares
    Pack<kWidth> pivot = {};
    if (thread.is_active) pivot = load<kWidth>(from);
    thread.template for_each_pixel<2 * kInFlight<T>>(
        tiling.pixels,
        [&](std::int64_t pixel) { return Raw<T, kWidth>::load(from + pixel * channels); },
        [&](std::int64_t, const Raw<T, kWidth>& raw) {
            const Pack<kWidth> values = raw.numbers();
            for (int i = 0; i < kWidth; ++i) {
                const float difference = values.lane[i] - pivot.lane[i];
                sums[0][i] += difference;
                sums[1][i] = fmaf(difference, difference, sums[1][i]);
            }
        });
    write_partial(tiling, thread, sums, workspace);
    if (thread.is_active && thread.chunk == 0 && thread.row == 0) {
        for (int i = 0; i < kWidth; ++i) {
            pivots[span * channels + thread.channel + i] = pivot.lane[i];
        }
    }
}

__global__ void __launch_bounds__(kFinalThreads)
    combine_kernel(const Tiling tiling, int spans, const BatchNormParameters parameters,
                   const BatchNormStatistics statistics, const float* workspace,
                   const float* pivots) {
    const int channel = final_channel();
    const bool writes = threadIdx.x < kFinalChannels && channel < tiling.channels;
    const auto count = static_cast<double>(tiling.pixels);
    RunningStatistics running(parameters, spans, count);
    for (int span = 0; span < spans; ++span) {
        const Sums sums = combine_partials(tiling, span, workspace);
        if (!writes) continue;
        const std::int64_t index = static_cast<std::int64_t>(span) * tiling.channels + channel;
        const Moments moments = moments_of(sums, pivots[index], count);
        write_affine(parameters, statistics, channel, index, moments);
        running.add(moments);
    }
    if (writes) running.update(channel);
}

__global__ void __launch_bounds__(kFinalThreads)
    moments_kernel(const Tiling tiling, const float* workspace, const float* pivots,
                   double* moments) {
    const int channel = final_channel();
    const Sums sums = combine_partials(tiling, 0, workspace);
    if (threadIdx.x >= kFinalChannels || channel >= tiling.channels) return;
    const Moments own = moments_of(sums, pivots[channel], static_cast<double>(tiling.pixels));
    moments[channel] = own.mean;
    moments[tiling.channels + channel] = own.variance + own.mean * own.mean;
}

__global__ void statistics_from_moments_kernel(const BatchNormShape shape,
                                               const BatchNormSharedMomentsArguments args) {
    const int channel = static_cast<int>(first_item());
    if (channel >= shape.channels) return;
    const Moments all =
        moments_of({args.moments[channel], args.moments[shape.channels + channel]}, 0, args.ranks);
    write_affine(args.parameters, args.statistics, channel, channel, all);
    RunningStatistics running(args.parameters, 1, static_cast<double>(args.ranks * shape.pixels));
    running.add(all);
    running.update(channel);
}

__global__ void statistics_from_sums_kernel(const BatchNormShape shape,
                                            const BatchNormSumsArguments args) {
    const int channel = static_cast<int>(first_item());
    if (channel >= shape.channels) return;
    const auto count = static_cast<double>(shape.pixels);
    const int spans = static_cast<int>(shape.spans);
    RunningStatistics running(args.parameters, spans, count);
    for (int span = 0; span < spans; ++span) {
        const std::int64_t index = span * shape.channels + channel;
        const Moments moments = moments_of({args.sum[index], args.squares[index]}, 0, count);
        write_affine(args.parameters, args.statistics, channel, index, moments);
        running.add(moments);
    }
    running.update(channel);
}

__global__ void running_affine_kernel(std::int64_t channels, const BatchNormParameters parameters,
                                      const BatchNormStatistics statistics) {
    const int channel = static_cast<int>(first_item());
    if (channel >= channels) return;
    write_affine(parameters, {nullptr, nullptr, statistics.scale, statistics.shift}, channel,
                 channel, {parameters.running_mean[channel], parameters.running_variance[channel]});
}

enum class Residual { none, plain, normalized };

template <typename T>
struct ApplyTensors {
    const T* x;
    const T* residual;
    T* y;
    const float *scale, *shift, *residual_scale, *residual_shift;
    std::uint8_t* mask;
    bool relu;
};

/// Computes y of one element before rounding, and its bit of the mask.
__device__ inline float rectify(bool relu, float value, unsigned bit, unsigned& bits) {
    if (value > 0) bits |= 1u << bit;
    return relu && value < 0 ? 0 : value;
}

template <typename T, Residual kResidual>
__global__ void __launch_bounds__(kThreads, kBlocksPerProcessor)
    apply_kernel(const Tiling tiling, const ApplyTensors<T> tensors) {
    const TileThread<kWide> thread(tiling);
    if (!thread.is_active) return;
    const std::int64_t channels = tiling.channels;
    // Descending, because after sum_kernel, which ascends, the cache holds the end of the tensor.
    const std::int64_t span = gridDim.y - 1 - blockIdx.y;
    const std::int64_t last = ((span + 1) * tiling.pixels - 1) * channels + thread.channel;
    const std::int64_t statistic_index = span * channels + thread.channel;
    const auto scale = load<kWide>(tensors.scale + statistic_index);
    const auto shift = load<kWide>(tensors.shift + statistic_index);
    Pack<kWide> residual_scale = {}, residual_shift = {};
    if constexpr (kResidual == Residual::normalized) {
        residual_scale = load<kWide>(tensors.residual_scale + statistic_index);
        residual_shift = load<kWide>(tensors.residual_shift + statistic_index);
    }
    struct Loaded {
        Raw<T, kWide> x, r;
    };
    thread.template for_each_pixel<kInFlight<T>>(
        tiling.pixels,
        [&](std::int64_t pixel) {
            Loaded loaded;
            loaded.x = Raw<T, kWide>::load(tensors.x + last - pixel * channels);
            if constexpr (kResidual != Residual::none) {
                loaded.r = Raw<T, kWide>::load(tensors.residual + last - pixel * channels);
            }
            return loaded;
        },
        [&](std::int64_t pixel, const Loaded& loaded) {
            const Pack<kWide> x = loaded.x.numbers();
            Pack<kWide> y, residual = {};
            if constexpr (kResidual != Residual::none) residual = loaded.r.numbers();
            unsigned bits = 0;
            for (unsigned i = 0; i < kWide; ++i) {
                float value = fmaf(x.lane[i], scale.lane[i], shift.lane[i]);
                if constexpr (kResidual == Residual::plain) value += residual.lane[i];
                if constexpr (kResidual == Residual::normalized) {
                    value += fmaf(residual.lane[i], residual_scale.lane[i], residual_shift.lane[i]);
                }
                y.lane[i] = rectify(tensors.relu, value, i, bits);
            }
            const std::int64_t at = last - pixel * channels;
            store(tensors.y + at, y);
            if (tensors.mask != nullptr) tensors.mask[at / 8] = static_cast<std::uint8_t>(bits);
        });
}

/// For any number of channels: a thread makes a byte of the mask, which may cover several pixels.
template <typename T>
__global__ void apply_scalar_kernel(const BatchNormShape shape, const ApplyTensors<T> tensors) {
    const std::int64_t span_elements = shape.pixels * shape.channels;
    const std::int64_t elements = shape.spans * span_elements;
    for (std::int64_t byte = first_item(); byte * 8 < elements; byte += item_stride()) {
        unsigned bits = 0;
        for (unsigned bit = 0; bit < 8 && byte * 8 + bit < elements; ++bit) {
            const std::int64_t at = byte * 8 + bit;
            const std::int64_t index = at / span_elements * shape.channels + at % shape.channels;
            float value = fmaf(to_float(tensors.x[at]), tensors.scale[index], tensors.shift[index]);
            if (tensors.residual != nullptr) {
                float r = to_float(tensors.residual[at]);
                if (tensors.residual_scale != nullptr) {
                    r = fmaf(r, tensors.residual_scale[index], tensors.residual_shift[index]);
                }
                value += r;
            }
            tensors.y[at] = from_float<T>(rectify(tensors.relu, value, bit, bits));
        }
        if (tensors.mask != nullptr) tensors.mask[byte] = static_cast<std::uint8_t>(bits);
    }
}

}  // namespace

void batch_norm::sum_differences(const BatchNormShape& shape, const void* x, float* workspace,
                                 Stream stream) {
    const Tiling tiling = tiling_of(shape);
    const Grid grid = grid_of(shape, tiling, stream);
    float* pivots = workspace + partial_floats(shape);
    with_type(shape.dtype, [&]<typename T>() {
        launch(is_wide(shape) ? sum_kernel<T, kWide> : sum_kernel<T, 1>, grid, tiling,
               static_cast<const T*>(x), workspace, pivots);
    });
}

std::size_t batch_norm_workspace_bytes(const BatchNormShape& shape) {
    // The backward pass needs three coefficients for each span and channel.
    return sizeof(float) *
           static_cast<std::size_t>(partial_floats(shape) + 3 * shape.spans * shape.channels);
}

std::size_t batch_norm_mask_bytes(const BatchNormShape& shape) {
    return 4 * static_cast<std::size_t>(divide_up(shape.spans * shape.pixels * shape.channels, 32));
}

void batch_norm_statistics(const BatchNormShape& shape,
                           const BatchNormStatisticsArguments& arguments, Stream stream) {
    auto* workspace = static_cast<float*>(arguments.workspace);
    sum_differences(shape, arguments.x, workspace, stream);
    launch(combine_kernel, final_grid(shape.channels, stream), tiling_of(shape),
           static_cast<int>(shape.spans), arguments.parameters, arguments.statistics, workspace,
           workspace + partial_floats(shape));
}

void batch_norm_statistics_from_sums(const BatchNormShape& shape,
                                     const BatchNormSumsArguments& arguments, Stream stream) {
    launch(statistics_from_sums_kernel, thread_per_channel(shape.channels, stream), shape,
           arguments);
}

void batch_norm_moments(const BatchNormShape& shape, const BatchNormMomentsArguments& arguments,
                        Stream stream) {
    auto* workspace = static_cast<float*>(arguments.workspace);
    sum_differences(shape, arguments.x, workspace, stream);
    launch(moments_kernel, final_grid(shape.channels, stream), tiling_of(shape), workspace,
           workspace + partial_floats(shape), arguments.moments);
}

void batch_norm_statistics_from_moments(const BatchNormShape& shape,
                                        const BatchNormSharedMomentsArguments& arguments,
                                        Stream stream) {
    launch(statistics_from_moments_kernel, thread_per_channel(shape.channels, stream), shape,
           arguments);
}

void batch_norm_running_statistics(std::int64_t channels, const BatchNormParameters& parameters,
                                   const BatchNormStatistics& statistics, Stream stream) {
    launch(running_affine_kernel, thread_per_channel(channels, stream), channels, parameters,
           statistics);
}

void batch_norm_apply(const BatchNormShape& shape, const BatchNormApplyArguments& arguments,
                      Stream stream) {
    with_type(shape.dtype, [&]<typename T>() {
        const ApplyTensors<T> tensors{.x = static_cast<const T*>(arguments.x),
                                      .residual = static_cast<const T*>(arguments.residual),
                                      .y = static_cast<T*>(arguments.y),
                                      .scale = arguments.scale,
                                      .shift = arguments.shift,
                                      .residual_scale = arguments.residual_scale,
                                      .residual_shift = arguments.residual_shift,
                                      .mask = reinterpret_cast<std::uint8_t*>(arguments.mask),
                                      .relu = arguments.relu};
        if (!is_wide(shape)) {
            const std::int64_t bytes = divide_up(shape.spans * shape.pixels * shape.channels, 8);
            return launch(apply_scalar_kernel<T>, grid_over(bytes, stream), shape, tensors);
        }
        const Tiling tiling = tiling_of(shape);
        launch(arguments.residual == nullptr         ? apply_kernel<T, Residual::none>
               : arguments.residual_scale == nullptr ? apply_kernel<T, Residual::plain>
                                                     : apply_kernel<T, Residual::normalized>,
               grid_of(shape, tiling, stream), tiling, tensors);
    });
}

}  // namespace hpcai::kernels
