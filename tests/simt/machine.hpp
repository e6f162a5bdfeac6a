// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>

/// Runs CUDA kernels on the CPU, so that every kernel is tested without a GPU. Each thread is a
/// fiber. Threads of a block switch only at barriers and shuffles; blocks run one after the other.
/// Divergent barriers, inconsistent shuffles and blocks that never finish are errors.
namespace hpcai::simt {

struct Dim3 {
    unsigned x = 1, y = 1, z = 1;
};

/// The indices of the running thread: threadIdx and so on in CUDA.
struct Place {
    Dim3 thread, block, threads, blocks;
};
const Place& place();

/// Throws Error(internal) for a grid that CUDA does not support.
void check_grid(Dim3 blocks, unsigned threads);

/// Runs `body` once for every thread of a grid of one-dimensional blocks. Throws Error(internal) if
/// threads of a block wait at different barriers, or if a thread ends while others wait for it.
void run_grid(Dim3 blocks, unsigned threads, const std::function<void()>& body);

/// Implements __syncthreads.
void block_barrier();

/// Sends `bits` to the warp and returns those of lane `source`. All lanes of `mask` must call it.
std::uint64_t shuffle(std::uint32_t mask, std::uint64_t bits, unsigned source);

/// Returns a mask in which bit l is set if lane l of `mask` passed true.
std::uint32_t ballot(std::uint32_t mask, bool vote);

}  // namespace hpcai::simt
