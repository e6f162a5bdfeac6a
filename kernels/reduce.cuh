// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <hpcai/ops/optimizer_rule.hpp>

#include "elements.cuh"

namespace hpcai::kernels {

inline constexpr unsigned kWarp = 32;
inline constexpr unsigned kAllLanes = 0xffffffffu;

struct Sum {
    template <typename T>
    __device__ T operator()(T a, T b) const {
        return a + b;
    }
};
struct Minimum {
    template <typename T>
    __device__ T operator()(T a, T b) const {
        return a < b ? a : b;
    }
};
struct Maximum {
    template <typename T>
    __device__ T operator()(T a, T b) const {
        return a > b ? a : b;
    }
};

/// Combines values over a whole warp in a fixed order; every lane gets the result.
template <typename T, typename Combine>
__device__ T reduce_warp(T value, const Combine& combine) {
    for (int distance = 16; distance > 0; distance /= 2) {
        value = combine(value, __shfl_xor_sync(kAllLanes, value, distance));
    }
    return value;
}

/// Combines values over a block of whole warps in a fixed order; every thread gets the result.
/// `combine` has the identity `neutral`. All threads must call it; calls need no barrier between.
template <typename T, typename Combine>
__device__ T reduce_block(T value, T neutral, const Combine& combine) {
    __shared__ T warp_values[kWarp];
    const unsigned warp = threadIdx.x / kWarp, lane = threadIdx.x % kWarp;
    value = reduce_warp(value, combine);
    __syncthreads();  // the previous call may still read warp_values
    if (lane == 0) warp_values[warp] = value;
    __syncthreads();
    value = lane < blockDim.x / kWarp ? warp_values[lane] : neutral;
    return reduce_warp(value, combine);
}

/// The constants of one step of Adam or LAMB; without defaults, because shared memory allows none.
struct Moments {
    float gradient_factor;
    float beta1, one_minus_beta1;
    float beta2, one_minus_beta2;
    float mean_correction;  // 1 / (1 - beta1^t)
    float root_correction;  // 1 / sqrt(1 - beta2^t)
    float epsilon;

    /// Uses fp64, because 1 - beta^t of the first steps is too inexact in fp32.
    template <typename Rule>
    __device__ void set(const Rule& rule, const ops::StepScalars& scalars) {
        const double step = static_cast<double>(scalars.taken_steps) + 1;
        gradient_factor = scalars.gradient_factor;
        beta1 = static_cast<float>(rule.beta1);
        one_minus_beta1 = static_cast<float>(1 - rule.beta1);
        beta2 = static_cast<float>(rule.beta2);
        one_minus_beta2 = static_cast<float>(1 - rule.beta2);
        mean_correction = static_cast<float>(1 / (1 - pow(rule.beta1, step)));
        root_correction = static_cast<float>(1 / sqrt(1 - pow(rule.beta2, step)));
        epsilon = static_cast<float>(rule.epsilon);
    }

    __device__ void update(float& mean, float& square, float gradient) const {
        mean = fmaf(beta1, mean, one_minus_beta1 * gradient);
        square = fmaf(beta2, square, one_minus_beta2 * gradient * gradient);
    }
    __device__ float direction(float mean, float square) const {
        return mean_correction * mean / (root_correction * sqrtf(square) + epsilon);
    }
};

}  // namespace hpcai::kernels
