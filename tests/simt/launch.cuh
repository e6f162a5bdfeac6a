// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstring>
#include <tuple>
#include <type_traits>

#include <cuda_runtime.h>

#include "simt/machine.hpp"
#include "simt/streams.hpp"

/// Replaces kernels/launch.cuh where the host compiler compiles a kernel: the parts of CUDA C++
/// that the kernels use, on the CPU.
#undef __shared__
#define __shared__ static  // blocks run one after the other
#undef __launch_bounds__
#define __launch_bounds__(...)
#define threadIdx (::hpcai::simt::place().thread)
#define blockIdx (::hpcai::simt::place().block)
#define blockDim (::hpcai::simt::place().threads)
#define gridDim (::hpcai::simt::place().blocks)

inline void __syncthreads() {
    hpcai::simt::block_barrier();
}

inline void __syncwarp(unsigned mask = 0xffffffffu) {
    hpcai::simt::ballot(mask, false);
}

inline void __threadfence() {}

template <typename T>
T __shfl_xor_sync(unsigned mask, T value, int lanes) {
    std::uint64_t bits = 0;
    std::memcpy(&bits, &value, sizeof value);
    bits = hpcai::simt::shuffle(mask, bits, threadIdx.x % 32 ^ static_cast<unsigned>(lanes));
    std::memcpy(&value, &bits, sizeof value);
    return value;
}

template <typename T>
T __shfl_sync(unsigned mask, T value, int source) {
    std::uint64_t bits = 0;
    std::memcpy(&bits, &value, sizeof value);
    bits = hpcai::simt::shuffle(mask, bits, static_cast<unsigned>(source));
    std::memcpy(&value, &bits, sizeof value);
    return value;
}

template <typename T>
T __shfl_up_sync(unsigned mask, T value, unsigned lanes) {
    std::uint64_t bits = 0;
    std::memcpy(&bits, &value, sizeof value);
    const unsigned lane = threadIdx.x % 32;
    bits = hpcai::simt::shuffle(mask, bits, lane >= lanes ? lane - lanes : lane);
    std::memcpy(&value, &bits, sizeof value);
    return value;
}

template <typename T>
T __shfl_down_sync(unsigned mask, T value, unsigned lanes) {
    const unsigned lane = threadIdx.x % 32;
    const unsigned source = lane + lanes < 32 ? lane + lanes : lane;
    std::uint64_t bits = 0;
    std::memcpy(&bits, &value, sizeof value);
    bits = hpcai::simt::shuffle(mask, bits, source);
    std::memcpy(&value, &bits, sizeof value);
    return value;
}

inline unsigned __ballot_sync(unsigned mask, bool vote) {
    return hpcai::simt::ballot(mask, vote);
}

inline bool __any_sync(unsigned mask, bool vote) {
    return hpcai::simt::ballot(mask, vote) != 0;
}

inline bool __all_sync(unsigned mask, bool vote) {
    return hpcai::simt::ballot(mask, vote) == mask;
}

inline int __popc(unsigned bits) {
    return __builtin_popcount(bits);
}

inline int __ffs(unsigned bits) {
    return __builtin_ffs(static_cast<int>(bits));
}

template <typename T>
T atomicAdd(T* address, std::type_identity_t<T> value) {
    const T old = *address;
    *address = old + value;
    return old;
}

template <typename T>
T atomicOr(T* address, std::type_identity_t<T> value) {
    const T old = *address;
    *address = old | value;
    return old;
}

template <typename T>
T atomicMax(T* address, std::type_identity_t<T> value) {
    const T old = *address;
    if (value > old) *address = value;
    return old;
}

template <typename T>
T __ldg(const T* address) {
    return *address;
}

/// A product that the compiler cannot fuse with an addition, because hosts without such
/// instructions do not fuse either.
inline float __fmul_rn(float a, float b) {
    return a * b;
}

inline float __uint_as_float(unsigned bits) {
    float value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
}
inline unsigned __float_as_uint(float value) {
    unsigned bits;
    std::memcpy(&bits, &value, sizeof bits);
    return bits;
}

namespace hpcai::kernels {

struct Grid {
    std::int64_t blocks_x = 1;
    std::int64_t blocks_y = 1;
    unsigned threads = 1;
    cudaStream_t stream = nullptr;
};

/// Copies the arguments, as CUDA does, before it returns.
template <typename... Parameters, typename... Arguments>
void launch(void (*kernel)(Parameters...), const Grid& grid, Arguments&&... arguments) {
    const simt::Dim3 blocks{static_cast<unsigned>(grid.blocks_x),
                            static_cast<unsigned>(grid.blocks_y), 1};
    simt::check_grid(blocks, grid.threads);
    simt::enqueue(grid.stream,
                  [kernel, blocks, threads = grid.threads,
                   copies = std::tuple<Parameters...>(static_cast<Parameters>(arguments)...)] {
                      simt::run_grid(blocks, threads, [&] { std::apply(kernel, copies); });
                  });
}

}  // namespace hpcai::kernels
