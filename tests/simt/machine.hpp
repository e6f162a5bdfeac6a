// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>

/// Runs CUDA kernels on the CPU, so that every kernel is tested where no GPU is. One fiber a
/// thread; threads of a block change only at barriers and shuffles, blocks run one after the
/// other. Divergent barriers, out-of-step shuffles and blocks that never finish are errors.
namespace hpcai::simt {

struct Dim3 {
    unsigned x = 1, y = 1, z = 1;
};

/// The running thread's place, what CUDA calls threadIdx and so on.
struct Place {
    Dim3 thread, block, threads, blocks;
};
const Place& place();

/// Throws Error(internal) for a grid that CUDA does not launch.
void check_grid(Dim3 blocks, unsigned threads);

/// Runs `body` once for every thread of the grid; one-dimensional blocks. Throws Error(internal)
/// when threads of a block wait at different barriers or a thread ends while others wait for it.
void run_grid(Dim3 blocks, unsigned threads, const std::function<void()>& body);

/// What __syncthreads does.
void block_barrier();

/// Gives `bits` to the warp and returns what lane `source` gave. All lanes of `mask` take part.
std::uint64_t shuffle(std::uint32_t mask, std::uint64_t bits, unsigned source);

/// Bit l is set when lane l of `mask` gave true.
std::uint32_t ballot(std::uint32_t mask, bool vote);

}  // namespace hpcai::simt
