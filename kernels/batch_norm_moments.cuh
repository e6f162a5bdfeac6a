// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "batch_norm_tiles.cuh"

/// Code that computes the statistics of a BatchNorm from its moments.
namespace hpcai::kernels::batch_norm {

struct Moments {
    double mean = 0, variance = 0;  // the biased variance
};

/// Computes the moments of x from the sums of x - pivot and of (x - pivot)^2. A pivot near the
/// mean, such as the first pixel, avoids cancellation.
__device__ inline Moments moments_of(const Sums& differences, double pivot, double count) {
    const double offset = differences.first / count;
    const double variance = differences.second / count - offset * offset;
    // fmax() would turn a NaN variance into 0.
    return {pivot + offset, variance < 0 ? 0 : variance};
}

struct Affine {
    double scale, shift;
};
__device__ inline Affine affine_of(const BatchNormParameters& parameters, int channel,
                                   const Moments& moments) {
    const double inverse = 1 / sqrt(moments.variance + parameters.epsilon);
    const double scale = parameters.gamma[channel] * inverse;
    return {scale, parameters.beta[channel] - moments.mean * scale};
}

__device__ inline void write_affine(const BatchNormParameters& parameters,
                                    const BatchNormStatistics& statistics, int channel,
                                    std::int64_t index, const Moments& moments) {
    const auto [scale, shift] = affine_of(parameters, channel, moments);
    statistics.scale[index] = static_cast<float>(scale);
    statistics.shift[index] = static_cast<float>(shift);
    if (statistics.mean == nullptr) return;
    statistics.mean[index] = static_cast<float>(moments.mean);
    statistics.inverse_deviation[index] =
        static_cast<float>(1 / sqrt(moments.variance + parameters.epsilon));
}

/// Sums the moments of the spans of a channel, then updates the running statistics.
class RunningStatistics {
public:
    __device__ RunningStatistics(const BatchNormParameters& parameters, int spans, double count)
        : parameters_(parameters), spans_(spans), unbiased_(count > 1 ? count / (count - 1) : 1) {}

    __device__ void add(const Moments& moments) {
        sum_.mean += moments.mean;
        sum_.variance += moments.variance;
    }
    __device__ void update(int channel) const {
        update(parameters_.running_mean[channel], sum_.mean / spans_);
        update(parameters_.running_variance[channel], unbiased_ * sum_.variance / spans_);
    }

private:
    __device__ void update(float& running, double value) const {
        running =
            static_cast<float>((1 - parameters_.momentum) * running + parameters_.momentum * value);
    }
    const BatchNormParameters& parameters_;
    double spans_, unbiased_;
    Moments sum_;
};

}  // namespace hpcai::kernels::batch_norm
