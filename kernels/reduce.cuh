// SPDX-License-Identifier: Apache-2.0
#pragma once

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
/// `combine` has the identity `neutral`. All threads must call it; repeated calls need no barrier.
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

}  // namespace hpcai::kernels
