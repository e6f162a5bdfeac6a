// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include <hpcai/base/rounding.hpp>

#include "context.hpp"

namespace hpcai::device::cpu {

/// A value as rows of 16 elements in any layout; the last, shorter row is processed by element.
class FlatTiles {
public:
    FlatTiles(std::int64_t elements, DType dtype)
        : rows_(elements / kLanes), rest_(elements % kLanes), dtype_(dtype) {}

    /// Calls body(tile, byte offset) for parts of the value, in parallel.
    template <typename Body>
    void for_each(const Body& body) const {
        constexpr std::int64_t kRowsPerPart = 512;
        const std::int64_t parts = ceil_div(rows_, kRowsPerPart);
#pragma omp parallel for schedule(static)
        for (std::int64_t part = 0; part < parts; ++part) {
            const std::int64_t first = part * kRowsPerPart;
            body(Tile{std::min(kRowsPerPart, rows_ - first), kLanes, kLanes, dtype_},
                 bytes(first * kLanes));
        }
        if (rest_ > 0) body(Tile{rest_, 1, 1, dtype_}, bytes(rows_ * kLanes));
    }

private:
    static constexpr int kLanes = 16;
    std::size_t bytes(std::int64_t elements) const {
        return static_cast<std::size_t>(elements) * size_of(dtype_);
    }
    std::int64_t rows_, rest_;
    DType dtype_;
};

inline void* offset(void* base, std::size_t bytes) {
    return base == nullptr ? nullptr : static_cast<std::byte*>(base) + bytes;
}

// With scale 1 and shift 0 the loops of the normalization compute ReLU, addition and their
// gradients.
struct Identity {
    float one[16], zero[16] = {};
    Identity() { std::fill_n(one, 16, 1.0f); }
    /// The gradient dy0 (+ dy1) where `gate` is positive; everywhere without `relu`.
    GradientSource source(void* dy0, void* dy1, void* gate, bool relu) const {
        return {dy0, dy1, gate, gate, one, zero, relu};
    }
};

}  // namespace hpcai::device::cpu
