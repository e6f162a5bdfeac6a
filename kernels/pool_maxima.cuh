// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstring>
#include <type_traits>

#include "batch_norm_tiles.cuh"

/// The maximum of a pooling window. Elements are compared as they are stored, two of 16 bits in one
/// instruction.
namespace hpcai::kernels {

using batch_norm::Raw;

/// N adjacent elements as 32-bit words. A word has one fp32 element or two of 16 bits.
template <typename T, int N>
struct Words {
    static constexpr int kPerWord = 4 / static_cast<int>(sizeof(T));
    unsigned word[(N + kPerWord - 1) / kPerWord] = {};

    __device__ static Words load(const T* from) {
        const auto raw = Raw<T, N>::load(from);
        Words words;
        std::memcpy(words.word, &raw, sizeof raw);
        return words;
    }
    __device__ Pack<N> numbers() const {
        Raw<T, N> raw;
        std::memcpy(&raw, word, sizeof raw);
        return raw.numbers();
    }
};

template <typename To>
__device__ To from_bits(unsigned word) {
    static_assert(sizeof(To) == sizeof word);
    To result;
    std::memcpy(static_cast<void*>(&result), &word, sizeof word);
    return result;
}

/// A mask that has all bits of each element in which `value` is NaN or greater than `than`.
template <typename T>
__device__ unsigned greater(unsigned value, unsigned than) {
    if constexpr (sizeof(T) == 4) {
        const auto a = from_bits<float>(value);
        return a > from_bits<float>(than) || a != a ? ~0u : 0;
    } else {
        using Pair = std::conditional_t<std::is_same_v<T, __half>, __half2, __nv_bfloat162>;
        const auto a = from_bits<Pair>(value);
        return __hgt2_mask(a, from_bits<Pair>(than)) | __hneu2_mask(a, a);
    }
}

/// The current maxima of N channels in one window and their positions. A position has as many bits
/// as an element.
template <typename T, int N>
class Best {
public:
    __device__ explicit Best(int first_position) {
        const T lowest[2] = {from_float<T>(-INFINITY), from_float<T>(-INFINITY)};
        for (unsigned& word : maximum_.word) std::memcpy(&word, lowest, sizeof word);
        for (unsigned& word : position_.word) word = first_position * kEach;
    }

    /// Replaces the maximum where `value` is greater or NaN.
    __device__ void update(const Words<T, N>& value, int at) {
        int i = 0;
        for (const unsigned word : value.word) {
            const unsigned wins = greater<T>(word, maximum_.word[i]);
            maximum_.word[i] = (word & wins) | (maximum_.word[i] & ~wins);
            position_.word[i] = (at * kEach & wins) | (position_.word[i] & ~wins);
            ++i;
        }
    }
    __device__ Words<T, N>& maximum() { return maximum_; }
    __device__ int position(int lane) const {
        constexpr int kPerWord = Words<T, N>::kPerWord;
        return static_cast<int>(position_.word[lane / kPerWord] >> 16 * (lane % kPerWord) & 0xffff);
    }

private:
    static constexpr unsigned kEach = Words<T, N>::kPerWord == 2 ? 0x10001 : 1;  // 1 per element
    Words<T, N> maximum_, position_;
};

/// With a norm, changes the sign of x where the norm's scale is negative. The rounded norm
/// never decreases as this x increases, so the norm is maximal where this x is.
template <typename T, int N, bool kNorm>
class Signs {
public:
    __device__ Signs(const float* scales, int channel) {
        if constexpr (!kNorm) return;
        constexpr int kPerWord = Words<T, N>::kPerWord;
        const auto scale = load<N>(scales + channel);
        for (int lane = 0; lane < N; ++lane) {
            const int sign_bit = 32 / kPerWord * (lane % kPerWord + 1) - 1;
            flips_.word[lane / kPerWord] |= unsigned{scale.lane[lane] < 0} << sign_bit;
        }
    }
    __device__ void apply(Words<T, N>& x) const {
        if constexpr (!kNorm) return;
        int i = 0;
        for (unsigned& word : x.word) word ^= flips_.word[i++];
    }

private:
    Words<T, N> flips_;
};

}  // namespace hpcai::kernels
