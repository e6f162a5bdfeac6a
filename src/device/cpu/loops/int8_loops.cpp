// SPDX-License-Identifier: Apache-2.0
// Compiled once per instruction set, without fused multiply-adds, so that all sets round alike.
#include <utility>

#include "loops.hpp"

namespace hpcai::device::cpu::HPCAI_ISA {

#include "vector.hpp"

namespace {

constexpr int kLanes = 16;
constexpr int kBlocks = kLanes;            // Philox blocks computed at a time, 128 bits each
constexpr int kDithers = kBlocks * 4 * 2;  // two from each 32-bit word

using Numbers = Floats<kLanes>;
using Words = Vectors<kLanes>::Words;
using Integers = Vectors<kLanes>::Integers;
typedef std::uint64_t Wide __attribute__((vector_size(4 * kLanes)));

struct Products {
    Words high, low;
};

/// Returns the high and low words of the products of 32-bit words with `factor`.
inline Products multiply(Words words, std::uint32_t factor) {
    constexpr std::uint64_t kLow = 0xffffffff;
    const Wide both = (Wide)words;
    const Wide even = (both & kLow) * std::uint64_t{factor};
    const Wide odd = (both >> 32) * std::uint64_t{factor};
    return {(Words)((even >> 32) | (odd & ~kLow)), (Words)((even & kLow) | (odd << 32))};
}

/// Computes kBlocks Philox blocks (hpcai/base/philox.hpp), beginning with dither.first_block +
/// `block`; words[i] receives word i of every block.
inline void philox(const Dither& dither, std::uint32_t block, Words* words) {
    const Words lanes = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    const Words zero = {};
    Words c0 = zero + dither.counter[0], c1 = lanes + (dither.first_block + block);
    Words c2 = zero + dither.counter[1], c3 = zero + dither.counter[2];
    std::uint32_t key0 = dither.key[0], key1 = dither.key[1];
    for (int round = 0; round < 10; ++round) {
        const Products product0 = multiply(c0, 0xD2511F53), product1 = multiply(c2, 0xCD9E8D57);
        c0 = product1.high ^ c1 ^ key0;
        c1 = product1.low;
        c2 = product0.high ^ c3 ^ key1;
        c3 = product0.low;
        key0 += 0x9E3779B9;
        key1 += 0xBB67AE85;
    }
    words[0] = c0;
    words[1] = c1;
    words[2] = c2;
    words[3] = c3;
}

/// Writes kDithers odd multiples of 2^-17 between -1/2 and 1/2.
inline void fill_dithers(const Dither& dither, std::uint32_t block, float* dithers) {
    Words words[4];
    philox(dither, block, words);
    for (int row = 0; row < 8; ++row) {
        const Words bits = row % 2 == 0 ? words[row / 2] & 0xffffu : words[row / 2] >> 16;
        const auto number = __builtin_convertvector((Integers)bits, Numbers);
        store<kLanes>(dithers + row * kLanes, number * 0x1p-16f + (0x1p-17f - 0.5f));
    }
}

/// Clamps to [-127, 127] and rounds to nearest even: x + 3 * 2^22 has the integer in its low bits.
inline void store_rounded(Numbers values, std::int8_t* to) {
    const Numbers limit = Numbers{} + 127.0f;
    values = values > limit ? limit : values;
    values = values < -limit ? -limit : values;
    const auto bytes = __builtin_convertvector((Words)(values + 0x1.8p23f), Vectors<kLanes>::Bytes);
    __builtin_memcpy(to, &bytes, sizeof bytes);
}

inline Words load_words(const std::uint32_t* from) {
    Words words;
    __builtin_memcpy(&words, from, sizeof words);
    return words;
}

inline void store_words(std::uint32_t* to, Words words) {
    __builtin_memcpy(to, &words, sizeof words);
}

/// Returns, for each lane, the larger of `largest` and the bits of |x|.
inline Words max_bits(Words largest, const float* x) {
    const auto bits = (Words)load<kLanes>(x) & 0x7fffffffu;
    return bits > largest ? bits : largest;
}

void largest_bits(const Tile& tile, const float* x, std::uint32_t* largest) {
    Words maxima = load_words(largest);
    for (std::int64_t pixel = 0; pixel < tile.pixels; ++pixel) {
        maxima = max_bits(maxima, x + pixel * tile.stride);
    }
    store_words(largest, maxima);
}

std::uint32_t largest_of_filter(const FilterRows& filter, std::uint32_t* channel_maxima) {
    Words maxima = {};
    const float* row = filter.values;
    for (std::int64_t tap = 0; tap < filter.taps; ++tap, row += filter.channels) {
        for (std::int64_t channel = 0; channel < filter.channels; channel += kLanes) {
            maxima = max_bits(maxima, row + channel);
            store_words(channel_maxima + channel,
                        max_bits(load_words(channel_maxima + channel), row + channel));
        }
    }
    std::uint32_t largest = 0;
    for (int lane = 0; lane < kLanes; ++lane) {
        largest = maxima[lane] > largest ? maxima[lane] : largest;
    }
    return largest;
}

void round_to_int8(const Tile& tile, const RoundTile& task) {
    const Numbers inverse = load<kLanes>(task.inverse_step);
    for (std::int64_t pixel = 0; pixel < tile.pixels; ++pixel) {
        store_rounded(load<kLanes>(task.x + pixel * tile.stride) * inverse,
                      task.to + pixel * task.to_stride);
    }
}

void round_rotated(const FilterRows& filter, const float* inverse_steps, std::int8_t* to) {
    for (std::int64_t tap = filter.taps - 1; tap >= 0; --tap, to += filter.channels) {
        const float* row = filter.values + tap * filter.channels;
        for (std::int64_t channel = 0; channel < filter.channels; channel += kLanes) {
            store_rounded(load<kLanes>(row + channel) * load<kLanes>(inverse_steps + channel),
                          to + channel);
        }
    }
}

void dither_to_int8(const Tile& tile, const RoundTile& task, const Dither& dither) {
    constexpr std::int64_t kPixels = kDithers / kLanes;
    const Numbers inverse = load<kLanes>(task.inverse_step);
    float dithers[kDithers];
    std::uint32_t block = 0;
    for (std::int64_t first = 0; first < tile.pixels; first += kPixels, block += kBlocks) {
        const std::int64_t end = first + kPixels < tile.pixels ? first + kPixels : tile.pixels;
        fill_dithers(dither, block, dithers);
        for (std::int64_t pixel = first; pixel < end; ++pixel) {
            const Numbers value = load<kLanes>(task.x + pixel * tile.stride) * inverse;
            store_rounded(value + load<kLanes>(dithers + (pixel - first) * kLanes),
                          task.to + pixel * task.to_stride);
        }
    }
}

void scale_sums(const Tile& tile, const SumsTile& task) {
    const Numbers scale = load<kLanes>(task.scale);
    for (std::int64_t pixel = 0; pixel < tile.pixels; ++pixel) {
        Integers sums;
        __builtin_memcpy(&sums, task.sums + pixel * task.sums_stride, sizeof sums);
        store<kLanes>(task.y + pixel * tile.stride, __builtin_convertvector(sums, Numbers) * scale);
    }
}

}  // namespace

void set_int8_loops(SimdKernels& table) {
    table.largest_bits = largest_bits;
    table.largest_of_filter = largest_of_filter;
    table.round_to_int8 = round_to_int8;
    table.round_rotated = round_rotated;
    table.dither_to_int8 = dither_to_int8;
    table.scale_sums = scale_sums;
}

}  // namespace hpcai::device::cpu::HPCAI_ISA
