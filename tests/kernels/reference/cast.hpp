// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cast.hpp"
#include "kernels/host_numbers.hpp"

namespace hpcai::kernels::reference {

inline void cast_from_f32(const float* from, tensor::DType dtype, void* to, std::int64_t count,
                          Stream) {
    for (std::int64_t i = 0; i < count; ++i) put(dtype, to, i, from[i]);
}

inline void cast_to_f32(tensor::DType dtype, const void* from, float* to, std::int64_t count,
                        Stream) {
    for (std::int64_t i = 0; i < count; ++i) to[i] = static_cast<float>(get(dtype, from, i));
}

inline void pad_channels(const PaddedRows& shape, const float* from, void* to, Stream) {
    for (std::int64_t row = 0; row < shape.rows; ++row) {
        for (int c = 0; c < shape.padded_channels; ++c) {
            const double value = c < shape.channels ? from[row * shape.channels + c] : 0;
            put(shape.dtype, to, row * shape.padded_channels + c, value);
        }
    }
}

inline void strip_channels(const PaddedRows& shape, const void* from, float* to, Stream) {
    for (std::int64_t row = 0; row < shape.rows; ++row) {
        for (int c = 0; c < shape.channels; ++c) {
            to[row * shape.channels + c] =
                static_cast<float>(get(shape.dtype, from, row * shape.padded_channels + c));
        }
    }
}

}  // namespace hpcai::kernels::reference
