// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "kernels/bias.hpp"
#include "kernels/host_numbers.hpp"

namespace hpcai::kernels::reference {

inline void bias(const BiasShape& shape, const BiasArguments& arguments, Stream) {
    for (std::int64_t i = 0; i < shape.pixels * shape.stored_channels; ++i) {
        const std::int64_t channel = i % shape.stored_channels;
        double value = get(shape.dtype, arguments.x, i);
        if (channel < shape.channels) value += arguments.bias[channel];
        put(shape.dtype, arguments.y, i, arguments.relu && value <= 0 ? 0 : value);
    }
}

inline void bias_gradient(const BiasShape& shape, const BiasGradientArguments& arguments, Stream) {
    std::vector<double> sums(static_cast<std::size_t>(shape.stored_channels));
    for (std::int64_t i = 0; i < shape.pixels * shape.stored_channels; ++i) {
        double gradient = get(shape.dtype, arguments.dy0, i);
        if (arguments.dy1 != nullptr) gradient += get(shape.dtype, arguments.dy1, i);
        if (arguments.y != nullptr && get(shape.dtype, arguments.y, i) <= 0) gradient = 0;
        sums[i % shape.stored_channels] += gradient;
        if (arguments.dx != nullptr) put(shape.dtype, arguments.dx, i, gradient);
    }
    for (std::int64_t channel = 0; channel < shape.channels; ++channel) {
        arguments.bias_gradient[channel] = static_cast<float>(sums[channel]);
    }
}

}  // namespace hpcai::kernels::reference
