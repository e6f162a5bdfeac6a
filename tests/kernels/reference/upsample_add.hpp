// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "kernels/host_numbers.hpp"
#include "kernels/upsample_add.hpp"

namespace hpcai::kernels::reference {

/// Calls body(fine element, coarse element that it reads) for every fine element.
template <typename Body>
void for_each_element(const UpsampleShape& shape, const Body& body) {
    std::int64_t fine = 0;
    for (std::int64_t image = 0; image < shape.images; ++image) {
        for (std::int64_t i = 0; i < shape.height; ++i) {
            for (std::int64_t j = 0; j < shape.width; ++j) {
                const std::int64_t row =
                    image * shape.coarse_height + i * shape.coarse_height / shape.height;
                const std::int64_t pixel =
                    row * shape.coarse_width + j * shape.coarse_width / shape.width;
                for (std::int64_t c = 0; c < shape.channels; ++c) {
                    body(fine++, pixel * shape.channels + c);
                }
            }
        }
    }
}

inline void upsample_add(const UpsampleShape& shape, const void* fine, const void* coarse, void* y,
                         Stream) {
    for_each_element(shape, [&](std::int64_t at, std::int64_t from) {
        put(shape.dtype, y, at, get(shape.dtype, fine, at) + get(shape.dtype, coarse, from));
    });
}

inline void upsample_add_gradient(const UpsampleShape& shape,
                                  const UpsampleAddGradientArguments& arguments, Stream) {
    const std::int64_t elements =
        shape.images * shape.coarse_height * shape.coarse_width * shape.channels;
    std::vector<double> sums(static_cast<std::size_t>(elements));
    for_each_element(shape, [&](std::int64_t at, std::int64_t from) {
        double gradient = get(shape.dtype, arguments.dy0, at);
        if (arguments.dy1 != nullptr) gradient += get(shape.dtype, arguments.dy1, at);
        sums[from] += gradient;
        if (arguments.fine_gradient != nullptr) {
            put(shape.dtype, arguments.fine_gradient, at, gradient);
        }
    });
    if (arguments.coarse_gradient == nullptr) return;
    for (std::int64_t i = 0; i < elements; ++i) {
        put(shape.dtype, arguments.coarse_gradient, i, sums[i]);
    }
}

}  // namespace hpcai::kernels::reference
