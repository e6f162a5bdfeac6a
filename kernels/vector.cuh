// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

namespace hpcai::kernels {

/// The number of elements in one 16-byte access.
template <typename T>
inline constexpr int kLanes = 16 / static_cast<int>(sizeof(T));

__host__ __device__ inline float to_float(float value) {
    return value;
}
__host__ __device__ inline float to_float(__half value) {
    return __half2float(value);
}
__host__ __device__ inline float to_float(__nv_bfloat16 value) {
    return __bfloat162float(value);
}

/// Rounds to the nearest number of type T, ties to even.
template <typename T>
__host__ __device__ inline T from_float(float value);
template <>
__host__ __device__ inline float from_float<float>(float value) {
    return value;
}
template <>
__host__ __device__ inline __half from_float<__half>(float value) {
    return __float2half_rn(value);
}
template <>
__host__ __device__ inline __nv_bfloat16 from_float<__nv_bfloat16>(float value) {
    return __float2bfloat16_rn(value);
}

/// Loads or stores kLanes<T> numbers as fp32 with one aligned 16-byte access.
template <typename T>
struct Vector {
    float lane[kLanes<T>];

    __host__ __device__ static Vector load(const T* from) {
        alignas(16) T elements[kLanes<T>];
        *reinterpret_cast<uint4*>(elements) = *reinterpret_cast<const uint4*>(from);
        Vector result;
        for (int i = 0; i < kLanes<T>; ++i) result.lane[i] = to_float(elements[i]);
        return result;
    }
    __host__ __device__ void store(T* to) const {
        alignas(16) T elements[kLanes<T>];
        for (int i = 0; i < kLanes<T>; ++i) elements[i] = from_float<T>(lane[i]);
        *reinterpret_cast<uint4*>(to) = *reinterpret_cast<const uint4*>(elements);
    }
};

}  // namespace hpcai::kernels
