// SPDX-License-Identifier: Apache-2.0
// Compiled once per instruction set; HPCAI_ISA is its name and the namespace.
#include <utility>

#include "loops.hpp"

namespace hpcai::device::cpu::HPCAI_ISA {

// <name>_loops.cpp defines set_<name>_loops(), which adds its loops to the table.
void set_optimizer_loops(SimdKernels& table);
void set_detection_loops(SimdKernels& table);
void set_int8_loops(SimdKernels& table);

#include "vector.hpp"

namespace {

// statistics() and gradient_sums() add up pixels in blocks, which limits rounding errors.
// statistics() computes two independent sums at a time to hide latency.
constexpr std::int64_t kPixelsPerBlock = 256;

template <int Lanes, typename T>
void statistics(const Tile& tile, const StatisticsTile& task) {
    const T* x = static_cast<const T*>(task.x);
    const Floats<Lanes> pivot = load<Lanes>(task.pivot);
    Floats<Lanes> sum = {}, squares = {};
    for (std::int64_t start = 0; start < tile.pixels; start += kPixelsPerBlock) {
        const std::int64_t end =
            start + kPixelsPerBlock < tile.pixels ? start + kPixelsPerBlock : tile.pixels;
        Floats<Lanes> sum0 = {}, sum1 = {}, squares0 = {}, squares1 = {};
        std::int64_t pixel = start;
        for (; pixel + 1 < end; pixel += 2) {
            const Floats<Lanes> v0 = load<Lanes>(x + pixel * tile.stride) - pivot;
            const Floats<Lanes> v1 = load<Lanes>(x + (pixel + 1) * tile.stride) - pivot;
            sum0 += v0;
            sum1 += v1;
            squares0 += v0 * v0;
            squares1 += v1 * v1;
        }
        if (pixel < end) {
            const Floats<Lanes> v = load<Lanes>(x + pixel * tile.stride) - pivot;
            sum0 += v;
            squares0 += v * v;
        }
        sum += sum0 + sum1;
        squares += squares0 + squares1;
    }
    store<Lanes>(task.sum, sum);
    store<Lanes>(task.squares, squares);
}

template <int Lanes, typename T, bool Residual, bool Relu>
void apply_loop(const Tile& tile, const ApplyTile& task) {
    const T* x = static_cast<const T*>(task.x);
    const T* residual = static_cast<const T*>(task.residual);
    T* y = static_cast<T*>(task.y);
    const Floats<Lanes> scale = load<Lanes>(task.scale), shift = load<Lanes>(task.shift);
    for (std::int64_t pixel = 0; pixel < tile.pixels; ++pixel) {
        const std::int64_t at = pixel * tile.stride;
        Floats<Lanes> value = load<Lanes>(x + at) * scale + shift;
        if constexpr (Residual) value += load<Lanes>(residual + at);
        if constexpr (Relu) value = where_positive<Lanes>(value, value);
        store<Lanes>(y + at, value);
    }
}

template <int Lanes, typename T>
void apply(const Tile& tile, const ApplyTile& task) {
    if (task.residual != nullptr) {
        task.relu ? apply_loop<Lanes, T, true, true>(tile, task)
                  : apply_loop<Lanes, T, true, false>(tile, task);
    } else {
        task.relu ? apply_loop<Lanes, T, false, true>(tile, task)
                  : apply_loop<Lanes, T, false, false>(tile, task);
    }
}

/// What determines where a ReLU blocks the gradient; see GradientSource.
enum class Gate { none, affine, output };

/// Returns the gradient g of one pixel; see GradientSource.
template <int Lanes, typename T, Gate Kind, bool HasSecond>
inline Floats<Lanes> gradient_at(const GradientSource& source, std::int64_t at, Floats<Lanes> x,
                                 Floats<Lanes> scale, Floats<Lanes> shift) {
    Floats<Lanes> g = load<Lanes>(static_cast<const T*>(source.dy0) + at);
    if constexpr (HasSecond) g += load<Lanes>(static_cast<const T*>(source.dy1) + at);
    if constexpr (Kind == Gate::affine) g = where_positive<Lanes>(x * scale + shift, g);
    if constexpr (Kind == Gate::output) {
        g = where_positive<Lanes>(load<Lanes>(static_cast<const T*>(source.y) + at), g);
    }
    return g;
}

template <int Lanes, typename T, Gate Kind, bool HasSecond>
void gradient_sums_loop(const Tile& tile, const GradientSumsTile& task) {
    const GradientSource& source = task.source;
    T* masked = static_cast<T*>(task.masked);
    const Floats<Lanes> scale = load<Lanes>(source.scale), shift = load<Lanes>(source.shift);
    const Floats<Lanes> mean = load<Lanes>(task.mean);
    Floats<Lanes> sum = {}, products = {};
    for (std::int64_t start = 0; start < tile.pixels; start += kPixelsPerBlock) {
        const std::int64_t end =
            start + kPixelsPerBlock < tile.pixels ? start + kPixelsPerBlock : tile.pixels;
        Floats<Lanes> block_sum = {}, block_products = {};
        for (std::int64_t pixel = start; pixel < end; ++pixel) {
            const std::int64_t at = pixel * tile.stride;
            const Floats<Lanes> x = load<Lanes>(static_cast<const T*>(source.x) + at);
            const auto g = gradient_at<Lanes, T, Kind, HasSecond>(source, at, x, scale, shift);
            if (masked != nullptr) store<Lanes>(masked + at, g);
            block_sum += g;
            block_products += g * (x - mean);
        }
        sum += block_sum;
        products += block_products;
    }
    store<Lanes>(task.sum, sum);
    store<Lanes>(task.products, products);
}

template <int Lanes, typename T, Gate Kind, bool HasSecond>
void gradient_apply_loop(const Tile& tile, const GradientApplyTile& task) {
    const GradientSource& source = task.source;
    T* dx = static_cast<T*>(task.dx);
    const Floats<Lanes> scale = load<Lanes>(source.scale), shift = load<Lanes>(source.shift);
    const Floats<Lanes> a = load<Lanes>(task.a), b = load<Lanes>(task.b), c = load<Lanes>(task.c);
    for (std::int64_t pixel = 0; pixel < tile.pixels; ++pixel) {
        const std::int64_t at = pixel * tile.stride;
        const Floats<Lanes> x = load<Lanes>(static_cast<const T*>(source.x) + at);
        const auto g = gradient_at<Lanes, T, Kind, HasSecond>(source, at, x, scale, shift);
        store<Lanes>(dx + at, a * g + b * x + c);
    }
}

/// Calls `loop` with the source's gate, and whether dy1 exists, as compile-time constants.
void with_source(const GradientSource& source, const auto& loop) {
    const bool has_second = source.dy1 != nullptr;
    const Gate gate = !source.relu ? Gate::none : source.y != nullptr ? Gate::output : Gate::affine;
    switch (gate) {
        case Gate::none:
            return has_second ? loop.template operator()<Gate::none, true>()
                              : loop.template operator()<Gate::none, false>();
        case Gate::affine:
            return has_second ? loop.template operator()<Gate::affine, true>()
                              : loop.template operator()<Gate::affine, false>();
        case Gate::output:
            return has_second ? loop.template operator()<Gate::output, true>()
                              : loop.template operator()<Gate::output, false>();
    }
}

template <int Lanes, typename T>
void gradient_sums(const Tile& tile, const GradientSumsTile& task) {
    with_source(task.source, [&]<Gate Kind, bool HasSecond>() {
        gradient_sums_loop<Lanes, T, Kind, HasSecond>(tile, task);
    });
}

template <int Lanes, typename T>
void gradient_apply(const Tile& tile, const GradientApplyTile& task) {
    with_source(task.source, [&]<Gate Kind, bool HasSecond>() {
        gradient_apply_loop<Lanes, T, Kind, HasSecond>(tile, task);
    });
}

template <int Lanes, typename T>
void pixel_sum(const Tile& tile, const void* x, float* sum) {
    Floats<Lanes> total = {};
    for (std::int64_t pixel = 0; pixel < tile.pixels; ++pixel) {
        total += load<Lanes>(static_cast<const T*>(x) + pixel * tile.stride);
    }
    store<Lanes>(sum, total);
}

template <int Lanes, typename T>
void pixel_fill(const Tile& tile, const float* value, void* x) {
    const Floats<Lanes> values = load<Lanes>(value);
    for (std::int64_t pixel = 0; pixel < tile.pixels; ++pixel) {
        store<Lanes>(static_cast<T*>(x) + pixel * tile.stride, values);
    }
}

template <int Lanes, typename T>
void store_floats(const Tile& tile, const float* rows, void* x) {
    for (std::int64_t pixel = 0; pixel < tile.pixels; ++pixel) {
        store<Lanes>(static_cast<T*>(x) + pixel * tile.stride, load<Lanes>(rows + pixel * Lanes));
    }
}

template <int Lanes, typename T>
void load_floats(const Tile& tile, const void* x, float* rows) {
    for (std::int64_t pixel = 0; pixel < tile.pixels; ++pixel) {
        store<Lanes>(rows + pixel * Lanes,
                     load<Lanes>(static_cast<const T*>(x) + pixel * tile.stride));
    }
}

/// Transposes 4 x 4 numbers in registers.
inline void transpose_4x4(const float* from, float* to, std::int64_t to_stride) {
    constexpr std::int64_t kFromStride = 16;  // numbers from row to row
    const Floats<4> a = load<4>(from), b = load<4>(from + kFromStride);
    const Floats<4> c = load<4>(from + 2 * kFromStride), d = load<4>(from + 3 * kFromStride);
    const Floats<4> ab_low = __builtin_shufflevector(a, b, 0, 4, 1, 5);
    const Floats<4> ab_high = __builtin_shufflevector(a, b, 2, 6, 3, 7);
    const Floats<4> cd_low = __builtin_shufflevector(c, d, 0, 4, 1, 5);
    const Floats<4> cd_high = __builtin_shufflevector(c, d, 2, 6, 3, 7);
    store<4>(to, __builtin_shufflevector(ab_low, cd_low, 0, 1, 4, 5));
    store<4>(to + to_stride, __builtin_shufflevector(ab_low, cd_low, 2, 3, 6, 7));
    store<4>(to + 2 * to_stride, __builtin_shufflevector(ab_high, cd_high, 0, 1, 4, 5));
    store<4>(to + 3 * to_stride, __builtin_shufflevector(ab_high, cd_high, 2, 3, 6, 7));
}

// Completes four rows of 64 bytes at a time. Rows whose distance is a power of two share a few
// cache sets, and 16 partial rows would evict each other.
void transpose_16x16(const float* from, float* to, std::int64_t to_stride) {
    for (std::int64_t row = 0; row < 16; row += 4) {
        for (std::int64_t column = 0; column < 16; column += 4) {
            transpose_4x4(from + column * 16 + row, to + row * to_stride + column, to_stride);
        }
    }
}

/// The output function of SplitMix64 (Steele et al. 2014).
std::uint64_t mix(std::uint64_t value) {
    value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9;
    value = (value ^ (value >> 27)) * 0x94d049bb133111eb;
    return value ^ (value >> 31);
}

std::uint64_t hash_words(const float* pairs, std::int64_t words, std::int64_t first) {
    constexpr std::uint64_t kGolden = 0x9e3779b97f4a7c15;  // 2^64 / golden ratio
    std::uint64_t sum = 0;
    for (std::int64_t index = 0; index < words; ++index) {
        const std::uint64_t low = __builtin_bit_cast(std::uint32_t, pairs[2 * index]);
        const std::uint64_t high = __builtin_bit_cast(std::uint32_t, pairs[2 * index + 1]);
        sum += mix((low | high << 32) + static_cast<std::uint64_t>(first + index + 1) * kGolden);
    }
    return sum;
}

SimdKernels make_table() {
    SimdKernels table{};
    table.statistics = [](const Tile& tile, const StatisticsTile& task) {
        with_type(tile, [&]<int Lanes, typename T>() { statistics<Lanes, T>(tile, task); });
    };
    table.apply = [](const Tile& tile, const ApplyTile& task) {
        with_type(tile, [&]<int Lanes, typename T>() { apply<Lanes, T>(tile, task); });
    };
    table.gradient_sums = [](const Tile& tile, const GradientSumsTile& task) {
        with_type(tile, [&]<int Lanes, typename T>() { gradient_sums<Lanes, T>(tile, task); });
    };
    table.gradient_apply = [](const Tile& tile, const GradientApplyTile& task) {
        with_type(tile, [&]<int Lanes, typename T>() { gradient_apply<Lanes, T>(tile, task); });
    };
    table.pixel_sum = [](const Tile& tile, const void* x, float* sum) {
        with_type(tile, [&]<int Lanes, typename T>() { pixel_sum<Lanes, T>(tile, x, sum); });
    };
    table.pixel_fill = [](const Tile& tile, const float* value, void* x) {
        with_type(tile, [&]<int Lanes, typename T>() { pixel_fill<Lanes, T>(tile, value, x); });
    };
    table.store_floats = [](const Tile& tile, const float* rows, void* x) {
        with_type(tile, [&]<int Lanes, typename T>() { store_floats<Lanes, T>(tile, rows, x); });
    };
    table.load_floats = [](const Tile& tile, const void* x, float* rows) {
        with_type(tile, [&]<int Lanes, typename T>() { load_floats<Lanes, T>(tile, x, rows); });
    };
    table.transpose_16x16 = transpose_16x16;
    table.hash_words = hash_words;
    set_optimizer_loops(table);
    set_detection_loops(table);
    set_int8_loops(table);
    return table;
}

}  // namespace

const SimdKernels& table() {
    static const SimdKernels kTable = make_table();
    return kTable;
}

}  // namespace hpcai::device::cpu::HPCAI_ISA
