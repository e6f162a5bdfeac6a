// SPDX-License-Identifier: Apache-2.0
#pragma once

// Included in the namespace of each instruction set, so that the linker does not mix versions.

/// 16 bits of a bfloat16: the upper half of a float.
struct Bf16 {
    std::uint16_t bits;
};

template <int Lanes>
struct Vectors {
    typedef float Floats __attribute__((vector_size(4 * Lanes)));
    typedef std::uint32_t Words __attribute__((vector_size(4 * Lanes)));
    typedef std::int32_t Integers __attribute__((vector_size(4 * Lanes)));
    typedef std::uint16_t Halves __attribute__((vector_size(2 * Lanes)));
    typedef std::uint8_t Bytes __attribute__((vector_size(Lanes)));
};
template <int Lanes>
using Floats = typename Vectors<Lanes>::Floats;

template <int Lanes>
inline Floats<Lanes> load(const float* from) {
    Floats<Lanes> values;
    __builtin_memcpy(&values, from, sizeof values);
    return values;
}

/// Puts 16 zero bits below each bfloat16, which converts it to float in one shuffle.
template <int Lanes, int... Half>
inline Floats<Lanes> widen(typename Vectors<Lanes>::Halves halves,
                           std::integer_sequence<int, Half...>) {
    const typename Vectors<Lanes>::Halves zeros = {};
    return (Floats<Lanes>)__builtin_shufflevector(halves, zeros,
                                                  (Half % 2 == 0 ? Lanes : Half / 2)...);
}

template <int Lanes>
inline Floats<Lanes> load(const Bf16* from) {
    typename Vectors<Lanes>::Halves halves;
    __builtin_memcpy(&halves, from, sizeof halves);
    return widen<Lanes>(halves, std::make_integer_sequence<int, 2 * Lanes>());
}

template <int Lanes>
inline void store(float* to, Floats<Lanes> values) {
    __builtin_memcpy(to, &values, sizeof values);
}

/// Rounds to nearest even. A NaN from arithmetic stays NaN; another NaN may become a number.
template <int Lanes>
inline void store(Bf16* to, Floats<Lanes> values) {
    using Words = typename Vectors<Lanes>::Words;
    const Words words = (Words)values;  // a vector cast keeps the bits
    const Words rounded = (words + 0x7fffu + ((words >> 16) & 1u)) >> 16;
    const auto halves = __builtin_convertvector(rounded, typename Vectors<Lanes>::Halves);
    __builtin_memcpy(to, &halves, sizeof halves);
}

/// Returns 0 where `gate` <= 0, else `values`, also for a NaN gate: a ReLU must not hide a NaN.
template <int Lanes>
inline Floats<Lanes> where_positive(Floats<Lanes> gate, Floats<Lanes> values) {
    const Floats<Lanes> zero = {};
    return gate <= zero ? zero : values;
}

/// Calls `loop` with the tile's lanes and element type as compile-time constants.
void with_type(const Tile& tile, const auto& loop) {
    if (tile.dtype == tensor::DType::f32) {
        if (tile.lanes == 16) return loop.template operator()<16, float>();
        if (tile.lanes == 8) return loop.template operator()<8, float>();
        return loop.template operator()<1, float>();
    }
    if (tile.lanes == 16) return loop.template operator()<16, Bf16>();
    if (tile.lanes == 8) return loop.template operator()<8, Bf16>();
    return loop.template operator()<1, Bf16>();
}
