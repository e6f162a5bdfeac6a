// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/host_numbers.hpp"
#include "kernels/input_normalize.hpp"

namespace hpcai::kernels::reference {

inline void input_normalize(const NormalizeArguments& arguments, Stream) {
    for (std::int64_t pixel = 0; pixel < arguments.count; ++pixel) {
        for (int c = 0; c < arguments.padded_channels; ++c) {
            double value = 0;
            if (c < arguments.channels) {
                const double byte = arguments.pixels[pixel * arguments.channels + c];
                const auto product = static_cast<float>(arguments.scale[c] * byte);
                value = static_cast<double>(product) + arguments.shift[c];
            }
            put(arguments.dtype, arguments.normalized, pixel * arguments.padded_channels + c,
                value);
        }
    }
}

inline void store_numbers(const StoreNumbersArguments& arguments, Stream) {
    for (std::int64_t pixel = 0; pixel < arguments.count; ++pixel) {
        for (int c = 0; c < arguments.padded_channels; ++c) {
            const std::int64_t from = pixel * arguments.channels + c;
            put(arguments.dtype, arguments.to, pixel * arguments.padded_channels + c,
                c < arguments.channels ? get(arguments.from_dtype, arguments.from, from) : 0);
        }
    }
}

}  // namespace hpcai::kernels::reference
