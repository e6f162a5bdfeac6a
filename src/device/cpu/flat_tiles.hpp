// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include "context.hpp"

namespace hpcai::device::cpu {

inline void* offset(void* base, std::size_t bytes) {
    return base == nullptr ? nullptr : static_cast<std::byte*>(base) + bytes;
}

/// Scale 1 and shift 0, with which normalization loops compute ReLU, addition and their gradients.
struct Identity {
    float ones[16], zeros[16] = {};
    Identity() { std::fill_n(ones, 16, 1.0f); }
    /// Returns the gradient dy0 + dy1; a null dy1 is 0. With `relu`, it is 0 where `gate` <= 0.
    GradientSource source(void* dy0, void* dy1, void* gate, bool relu) const {
        return {dy0, dy1, gate, gate, ones, zeros, relu};
    }
};

/// Elementwise operations on whole values of the same type, size and layout. A null addend is 0.
class FlatLoops {
public:
    FlatLoops(const Context& context, std::int64_t elements, DType dtype)
        : loops_(*context.loops),
          rows_(elements / kLanes),
          tail_(elements % kLanes),
          dtype_(dtype) {}

    /// y = x + addend, then max(y, 0) with `relu`. Unlike oneDNN's, this ReLU preserves NaN.
    void add(void* x, void* addend, void* y, bool relu) const {
        for_each([&](const Tile& tile, std::size_t at) {
            loops_.apply(tile, {offset(x, at), offset(addend, at), offset(y, at), identity_.ones,
                                identity_.zeros, relu});
        });
    }
    /// dx = 0 where y <= 0, else dy0 + dy1; a null dy1 is 0.
    void relu_gradient(void* dy0, void* dy1, void* y, void* dx) const {
        for_each([&](const Tile& tile, std::size_t at) {
            const GradientSource source =
                identity_.source(offset(dy0, at), offset(dy1, at), offset(y, at), true);
            loops_.gradient_apply(
                tile, {source, offset(dx, at), identity_.ones, identity_.zeros, identity_.zeros});
        });
    }

private:
    static constexpr int kLanes = 16;

    /// Calls body(tile, byte offset) for blocks of rows of 16 elements, in parallel, and for the
    /// tail of single elements.
    void for_each(const auto& body) const {
        constexpr std::int64_t kRowsPerBlock = 512;
        const std::int64_t blocks = ceil_div(rows_, kRowsPerBlock);
#pragma omp parallel for schedule(static)
        for (std::int64_t block = 0; block < blocks; ++block) {
            const std::int64_t first = block * kRowsPerBlock;
            body(Tile{std::min(kRowsPerBlock, rows_ - first), kLanes, kLanes, dtype_},
                 bytes(first * kLanes));
        }
        if (tail_ > 0) body(Tile{tail_, 1, 1, dtype_}, bytes(rows_ * kLanes));
    }
    std::size_t bytes(std::int64_t elements) const {
        return static_cast<std::size_t>(elements) * size_of(dtype_);
    }

    const SimdKernels& loops_;
    std::int64_t rows_, tail_;
    DType dtype_;
    Identity identity_;
};

}  // namespace hpcai::device::cpu
