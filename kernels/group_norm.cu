// SPDX-License-Identifier: Apache-2.0
#include "batch_norm_tiles.cuh"
#include "group_norm.hpp"

namespace hpcai::kernels {
namespace {

using namespace batch_norm;

constexpr unsigned kGroupThreads = 256;
constexpr int kGroupWarps = kGroupThreads / kWarp;

/// The group of a thread block, in one sample. An extra block has the padding channels, if any.
struct Group {
    int first, end;              // channels
    std::int64_t sample_offset;  // channel 0 in (samples, stored C)
    int warp, lane;

    __device__ Group(const Tiling& tiling, int per_group, int channels)
        : first(static_cast<int>(blockIdx.x) * per_group),
          end(first < channels ? first + per_group : tiling.channels),
          sample_offset(static_cast<std::int64_t>(blockIdx.y) * tiling.channels),
          warp(static_cast<int>(threadIdx.x / kWarp)),
          lane(static_cast<int>(threadIdx.x % kWarp)) {}

    __device__ double count() const { return end - first; }
};

/// Both sums of a channel in the sample of this block; every lane of the warp has the result.
__device__ Sums sums_of_channel(const Tiling& tiling, int channel, const float* workspace) {
    const std::int64_t channels = tiling.channels;
    const float* from =
        workspace + static_cast<std::int64_t>(blockIdx.y) * tiling.chunks * 2 * channels + channel;
    Sums sums;
    for (int chunk = static_cast<int>(threadIdx.x % kWarp); chunk < tiling.chunks;
         chunk += static_cast<int>(kWarp)) {
        sums.first += from[2 * chunk * channels];
        sums.second += from[(2 * chunk + 1) * channels];
    }
    return {reduce_warp(sums.first, Sum{}), reduce_warp(sums.second, Sum{})};
}

/// Sums a value, equal in all lanes of a warp, over the warps; every thread gets the result.
__device__ double sum_of_warps(const Group& group, double value) {
    return reduce_block(group.lane == 0 ? value : 0.0, 0.0, Sum{});
}

struct GroupParameters {
    const float *gamma, *beta;
    double epsilon;
    int channels, per_group;
};

__global__ void __launch_bounds__(kGroupThreads)
    combine_groups_kernel(const Tiling tiling, const GroupParameters parameters,
                          const BatchNormStatistics to, const float* workspace,
                          const float* pivots) {
    const Group group(tiling, parameters.per_group, parameters.channels);
    const auto pixels = static_cast<double>(tiling.pixels);
    // Means are relative to the pivot of the first channel, so that their squares do not cancel.
    const double pivot = pivots[group.sample_offset + group.first];
    double offset = 0, squares = 0;
    for (int channel = group.first + group.warp; channel < group.end; channel += kGroupWarps) {
        const Sums sums = sums_of_channel(tiling, channel, workspace);
        const double channel_offset = sums.first / pixels;
        const double from_pivot = pivots[group.sample_offset + channel] - pivot + channel_offset;
        offset += from_pivot;
        squares += sums.second / pixels - channel_offset * channel_offset + from_pivot * from_pivot;
    }
    offset = sum_of_warps(group, offset) / group.count();
    const double difference = sum_of_warps(group, squares) / group.count() - offset * offset;
    // fmax() would turn a NaN variance into 0.
    const double variance = difference < 0 ? 0 : difference, mean = pivot + offset;
    const double inverse = 1 / sqrt(variance + parameters.epsilon);
    for (int channel = group.first + static_cast<int>(threadIdx.x); channel < group.end;
         channel += static_cast<int>(kGroupThreads)) {
        const std::int64_t at = group.sample_offset + channel;
        const bool has_parameters = channel < parameters.channels;
        const double scale = has_parameters ? parameters.gamma[channel] * inverse : 0;
        to.scale[at] = static_cast<float>(scale);
        to.shift[at] =
            has_parameters ? static_cast<float>(parameters.beta[channel] - mean * scale) : 0;
        to.mean[at] = static_cast<float>(mean);
        to.inverse_deviation[at] = static_cast<float>(inverse);
    }
}

/// Writes the coefficients, and the sums of each sample and channel: (2, samples, stored C).
__global__ void __launch_bounds__(kGroupThreads)
    combine_gradients_kernel(const Tiling tiling, const GroupParameters parameters,
                             const BatchNormStatistics from, const float* workspace,
                             float* coefficients, float* sums_to) {
    const Group group(tiling, parameters.per_group, parameters.channels);
    const std::int64_t all = static_cast<std::int64_t>(gridDim.y) * tiling.channels;
    double sum = 0, products = 0;
    for (int channel = group.first + group.warp; channel < group.end; channel += kGroupWarps) {
        const Sums sums = sums_of_channel(tiling, channel, workspace);
        const double gamma = channel < parameters.channels ? parameters.gamma[channel] : 0;
        sum += gamma * sums.first;
        products += gamma * sums.second;
        if (group.lane != 0) continue;
        sums_to[group.sample_offset + channel] = static_cast<float>(sums.first);
        sums_to[all + group.sample_offset + channel] = static_cast<float>(sums.second);
    }
    sum = sum_of_warps(group, sum);
    products = sum_of_warps(group, products);
    const std::int64_t index = group.sample_offset + group.first;
    const double inverse = from.inverse_deviation[index];
    const double count = group.count() * static_cast<double>(tiling.pixels);
    const double input_factor = -inverse * inverse * inverse * products / count;
    const double constant = -inverse * sum / count - input_factor * from.mean[index];
    for (int channel = group.first + static_cast<int>(threadIdx.x); channel < group.end;
         channel += static_cast<int>(kGroupThreads)) {
        const std::int64_t at = group.sample_offset + channel;
        const double gamma = channel < parameters.channels ? parameters.gamma[channel] : 0;
        coefficients[at] = static_cast<float>(gamma * inverse);
        coefficients[all + at] = static_cast<float>(input_factor);
        coefficients[2 * all + at] = static_cast<float>(constant);
    }
}

struct ParameterGradients {
    float *gamma, *beta;
};

__global__ void parameter_kernel(const GroupNormShape shape, const float* inverse_deviation,
                                 const float* sums, const ParameterGradients to) {
    const std::int64_t channel = first_item(), stored = shape.spans.channels;
    if (channel >= shape.channels) return;
    double gamma_sum = 0, beta_sum = 0;
    for (std::int64_t sample = 0; sample < shape.spans.spans; ++sample) {
        const std::int64_t at = sample * stored + channel;
        beta_sum += sums[at];
        gamma_sum +=
            static_cast<double>(sums[shape.spans.spans * stored + at]) * inverse_deviation[at];
    }
    to.gamma[channel] = static_cast<float>(gamma_sum);
    to.beta[channel] = static_cast<float>(beta_sum);
}

Grid grid_over_groups(const GroupNormShape& shape, Stream stream) {
    const bool more_stored = shape.spans.channels > shape.channels;
    return {.blocks_x = shape.groups + (more_stored ? 1 : 0),
            .blocks_y = shape.spans.spans,
            .threads = kGroupThreads,
            .stream = stream};
}

int per_group(const GroupNormShape& shape) {
    return static_cast<int>(shape.channels / shape.groups);
}

}  // namespace

void group_norm_statistics(const GroupNormShape& shape,
                           const GroupNormStatisticsArguments& arguments, Stream stream) {
    auto* workspace = static_cast<float*>(arguments.workspace);
    sum_differences(shape.spans, arguments.x, workspace, stream);
    launch(combine_groups_kernel, grid_over_groups(shape, stream), tiling_of(shape.spans),
           GroupParameters{arguments.gamma, arguments.beta, arguments.epsilon,
                           static_cast<int>(shape.channels), per_group(shape)},
           arguments.statistics, workspace, workspace + partial_floats(shape.spans));
}

void group_norm_gradient_sums(const GroupNormShape& shape,
                              const GroupNormGradientArguments& arguments, Stream stream) {
    const BatchNormStatistics& statistics = arguments.statistics;
    sum_gradients(shape.spans,
                  {.x = arguments.x,
                   .dy0 = arguments.dy0,
                   .dy1 = arguments.dy1,
                   .statistics = statistics,
                   .relu = arguments.relu,
                   .workspace = arguments.workspace},
                  stream);
    auto* workspace = static_cast<float*>(arguments.workspace);
    float* sums = workspace + partial_floats(shape.spans);  // in place of batch_norm's coefficients
    launch(combine_gradients_kernel, grid_over_groups(shape, stream), tiling_of(shape.spans),
           GroupParameters{arguments.gamma, nullptr, 0, static_cast<int>(shape.channels),
                           per_group(shape)},
           statistics, workspace, arguments.coefficients, sums);
    launch(parameter_kernel, thread_per_channel(shape.channels, stream), shape,
           statistics.inverse_deviation, sums,
           ParameterGradients{arguments.gamma_gradient, arguments.beta_gradient});
}

}  // namespace hpcai::kernels
