// SPDX-License-Identifier: Apache-2.0
#include "elements.cuh"
#include "elementwise.hpp"
#include "reduce.cuh"

namespace hpcai::kernels {
namespace {

using Word = unsigned long long;  // a type that atomicAdd() takes
static_assert(sizeof(Word) == sizeof(std::uint64_t));

/// The term that word `index`, which has the bits of two values, adds to the sum: the output of
/// SplitMix64 (Steele et al. 2014).
__host__ __device__ inline Word mix(std::uint32_t low, std::uint32_t high, std::int64_t index) {
    Word value = low | static_cast<Word>(high) << 32;
    value += static_cast<Word>(index + 1) * 0x9e3779b97f4a7c15;
    value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9;
    value = (value ^ (value >> 27)) * 0x94d049bb133111eb;
    return value ^ (value >> 31);
}

__global__ void init_kernel(Word* sum, std::int64_t count) {
    *sum = static_cast<Word>(count);
}

/// Integer sums do not depend on the order of the blocks.
__global__ void hash_kernel(const std::uint32_t* bits, std::int64_t count, bool aligned,
                            Word* sum) {
    Word total = 0;
    const std::int64_t quads = aligned ? count / 4 : 0;
    for (std::int64_t at = first_item(); at < quads; at += item_stride()) {
        const uint4 quad = reinterpret_cast<const uint4*>(bits)[at];
        total += mix(quad.x, quad.y, 2 * at) + mix(quad.z, quad.w, 2 * at + 1);
    }
    const std::int64_t words = (count + 1) / 2;
    for (std::int64_t word = 2 * quads + first_item(); word < words; word += item_stride()) {
        const bool has_high = 2 * word + 1 < count;
        total += mix(bits[2 * word], has_high ? bits[2 * word + 1] : 0, word);
    }
    total = reduce_block(total, Word{0}, Sum{});
    if (threadIdx.x == 0) atomicAdd(sum, total);
}

}  // namespace

void hash(const float* values, std::int64_t count, std::uint64_t* sum, Stream stream) {
    Word* words = reinterpret_cast<Word*>(sum);
    const bool aligned = reinterpret_cast<std::uintptr_t>(values) % 16 == 0;
    launch(init_kernel, {.threads = 1, .stream = stream}, words, count);
    launch(hash_kernel, grid_over(divide_up(count, 4), stream),
           reinterpret_cast<const std::uint32_t*>(values), count, aligned, words);
}

}  // namespace hpcai::kernels
