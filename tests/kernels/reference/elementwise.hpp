// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/elementwise.hpp"
#include "kernels/host_numbers.hpp"

namespace hpcai::kernels::reference {

inline void add(const AddArguments& arguments, Stream) {
    for (std::int64_t i = 0; i < arguments.count; ++i) {
        const double b = arguments.b == nullptr ? 0 : get(arguments.dtype, arguments.b, i);
        put(arguments.dtype, arguments.sum, i, get(arguments.dtype, arguments.a, i) + b);
    }
}

inline void relu(tensor::DType dtype, const void* x, void* y, std::int64_t count, Stream) {
    for (std::int64_t i = 0; i < count; ++i) {
        const double value = get(dtype, x, i);
        put(dtype, y, i, value <= 0 ? 0 : value);
    }
}

inline void relu_of_f32(const float* x, tensor::DType dtype, void* y, std::int64_t count, Stream) {
    for (std::int64_t i = 0; i < count; ++i) put(dtype, y, i, x[i] <= 0 ? 0 : x[i]);
}

inline void relu_gradient(const ReluGradientArguments& arguments, Stream) {
    for (std::int64_t i = 0; i < arguments.count; ++i) {
        double gradient = get(arguments.dtype, arguments.dy0, i);
        if (arguments.dy1 != nullptr) gradient += get(arguments.dtype, arguments.dy1, i);
        put(arguments.dtype, arguments.dx, i,
            get(arguments.dtype, arguments.y, i) <= 0 ? 0 : gradient);
    }
}

inline void fill(tensor::DType dtype, void* to, float value, std::int64_t count, Stream) {
    for (std::int64_t i = 0; i < count; ++i) put(dtype, to, i, value);
}

}  // namespace hpcai::kernels::reference
