// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/frozen_norm.hpp"
#include "kernels/host_numbers.hpp"

namespace hpcai::kernels::reference {

inline void frozen_norm_gradient(const BatchNormShape& shape,
                                 const FrozenNormGradientArguments& arguments, Stream) {
    for (std::int64_t i = 0; i < shape.pixels * shape.channels; ++i) {
        double gradient = get(shape.dtype, arguments.dy0, i);
        if (arguments.dy1 != nullptr) gradient += get(shape.dtype, arguments.dy1, i);
        if (arguments.y != nullptr && get(shape.dtype, arguments.y, i) <= 0) gradient = 0;
        if (arguments.residual_gradient != nullptr) {
            put(shape.dtype, arguments.residual_gradient, i, gradient);
        }
        if (arguments.dx != nullptr) {
            put(shape.dtype, arguments.dx, i, arguments.scale[i % shape.channels] * gradient);
        }
    }
}

}  // namespace hpcai::kernels::reference
