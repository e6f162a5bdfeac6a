// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <numeric>

#include "batch_norm_tiles.cuh"

/// Helpers for operations that depend on the channel of an element, for any number of channels.
namespace hpcai::kernels {

/// Treats `fold` adjacent pixels as one, so that their channels together fill 16-byte vectors.
/// Pixels stay separate (fold 1) if their number is not a multiple of the required `fold`.
struct Folded {
    BatchNormShape shape;   // one span
    std::int64_t fold = 1;  // pixels combined into one

    Folded(tensor::DType dtype, std::int64_t pixels, std::int64_t channels) {
        const std::int64_t pixels_per_vector =
            std::lcm(channels, std::int64_t{batch_norm::kWide}) / channels;
        if (pixels % pixels_per_vector == 0) fold = pixels_per_vector;
        shape = {dtype, 1, pixels / fold, channels * fold};
    }
};

/// The output of an operation that may end with a ReLU, and its gradient, which is dy0 + dy1.
template <typename T>
struct GatedTensors {
    const T *y, *dy0, *dy1;
};

/// The gradient of kWidth elements before the ReLU. kGated: there is a ReLU.
template <typename T, int kWidth, bool kGated, bool kHasDy1>
struct GatedGradient {
    using Elements = batch_norm::Raw<T, kWidth>;
    Elements y, dy0, dy1;

    __device__ static GatedGradient load(const GatedTensors<T>& from, std::int64_t at) {
        GatedGradient loaded;
        if constexpr (kGated) loaded.y = Elements::load(from.y + at);
        loaded.dy0 = Elements::load(from.dy0 + at);
        if constexpr (kHasDy1) loaded.dy1 = Elements::load(from.dy1 + at);
        return loaded;
    }
    __device__ Pack<kWidth> numbers() const {
        Pack<kWidth> result = dy0.numbers();
        if constexpr (kHasDy1) {
            const Pack<kWidth> second = dy1.numbers();
            for (int i = 0; i < kWidth; ++i) result.lane[i] += second.lane[i];
        }
        if constexpr (kGated) {
            const Pack<kWidth> output = y.numbers();
            for (int i = 0; i < kWidth; ++i) {
                if (output.lane[i] <= 0) result.lane[i] = 0;
            }
        }
        return result;
    }
};

/// Calls `body` with the tensors y, dy0 and dy1 of `arguments`. Its template arguments are their
/// type, the width, whether there is a ReLU and whether there are two gradients.
template <typename Arguments, typename Body>
void with_gradients(const BatchNormShape& shape, const Arguments& arguments, const Body& body) {
    with_type(shape.dtype, [&]<typename T>() {
        const GatedTensors<T> tensors{static_cast<const T*>(arguments.y),
                                      static_cast<const T*>(arguments.dy0),
                                      static_cast<const T*>(arguments.dy1)};
        const bool gated = arguments.y != nullptr, has_dy1 = arguments.dy1 != nullptr;
        const auto with_width = [&]<int kWidth>() {
            if (gated && has_dy1) return body.template operator()<T, kWidth, true, true>(tensors);
            if (gated) return body.template operator()<T, kWidth, true, false>(tensors);
            if (has_dy1) return body.template operator()<T, kWidth, false, true>(tensors);
            body.template operator()<T, kWidth, false, false>(tensors);
        };
        batch_norm::is_wide(shape) ? with_width.template operator()<batch_norm::kWide>()
                                   : with_width.template operator()<1>();
    });
}

}  // namespace hpcai::kernels
