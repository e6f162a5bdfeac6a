// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <launch.cuh>

#include <hpcai/tensor/dtype.hpp>

#include "stream.hpp"

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
__host__ __device__ inline T from_float(float value) {
    if constexpr (std::is_same_v<T, __half>) {
        return __float2half_rn(value);
    } else if constexpr (std::is_same_v<T, __nv_bfloat16>) {
        return __float2bfloat16_rn(value);
    } else {
        return value;
    }
}

/// kLanes<T> numbers as fp32, loaded or stored as T with one aligned 16-byte access.
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

/// Calls `body` with the C++ type of a dtype that kernels compute in. Throws Error(internal) for
/// other types.
template <typename Body>
void with_type(tensor::DType dtype, const Body& body) {
    switch (dtype) {
        case tensor::DType::f32:
            return body.template operator()<float>();
        case tensor::DType::f16:
            return body.template operator()<__half>();
        case tensor::DType::bf16:
            return body.template operator()<__nv_bfloat16>();
        default:
            fail("kernels do not compute in", tensor::name_of(dtype).data());
    }
}

/// Calls `body` with the C++ type of a dtype and the number of channels per thread, which fill a
/// vector if possible.
template <typename Body>
void with_vectors(tensor::DType dtype, int channels, const Body& body) {
    with_type(dtype, [&]<typename T>() {
        if (channels % kLanes<T> == 0) return body.template operator()<T, kLanes<T>>();
        return body.template operator()<T, 1>();
    });
}

inline std::int64_t divide_up(std::int64_t dividend, std::int64_t divisor) {
    return (dividend + divisor - 1) / divisor;
}

inline constexpr unsigned kGridThreads = 256;

/// A grid whose blocks iterate over `items`.
inline Grid blocks_over(std::int64_t items, Stream stream) {
    constexpr std::int64_t kMaxBlocks = 132 * 8;  // resident on an H100 or H200
    return {.blocks_x = std::clamp<std::int64_t>(items, 1, kMaxBlocks),
            .threads = kGridThreads,
            .stream = stream};
}
/// A grid whose threads iterate over `items` by first_item() and item_stride().
inline Grid grid_over(std::int64_t items, Stream stream) {
    return blocks_over(divide_up(items, kGridThreads), stream);
}
__device__ inline std::int64_t first_item() {
    return static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}
__device__ inline std::int64_t item_stride() {
    return static_cast<std::int64_t>(gridDim.x) * blockDim.x;
}

/// N adjacent elements as fp32.
template <int N>
struct Pack {
    float lane[N];
};

/// Loads N elements; if kLanes<T> divides N, by 16-byte accesses to an aligned address.
template <int N, typename T>
__device__ Pack<N> load(const T* from) {
    Pack<N> pack;
    if constexpr (N % kLanes<T> == 0) {
        for (int first = 0; first < N; first += kLanes<T>) {
            const Vector<T> part = Vector<T>::load(from + first);
            for (int i = 0; i < kLanes<T>; ++i) pack.lane[first + i] = part.lane[i];
        }
    } else {
        for (int i = 0; i < N; ++i) pack.lane[i] = to_float(from[i]);
    }
    return pack;
}

/// Stores N elements, with the same accesses as load().
template <int N, typename T>
__device__ void store(T* to, const Pack<N>& pack) {
    if constexpr (N % kLanes<T> == 0) {
        for (int first = 0; first < N; first += kLanes<T>) {
            Vector<T> part;
            for (int i = 0; i < kLanes<T>; ++i) part.lane[i] = pack.lane[first + i];
            part.store(to + first);
        }
    } else {
        for (int i = 0; i < N; ++i) to[i] = from_float<T>(pack.lane[i]);
    }
}

}  // namespace hpcai::kernels
