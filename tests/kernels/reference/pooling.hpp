// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <vector>

#include "kernels/host_numbers.hpp"
#include "kernels/pooling.hpp"

namespace hpcai::kernels::reference {

/// One channel of one window.
struct Window {
    std::int64_t n;
    int p, q, c;
};

inline std::int64_t output_index(const PoolShape& shape, const Window& at) {
    return ((at.n * shape.output_height + at.p) * shape.output_width + at.q) * shape.channels +
           at.c;
}

/// Calls body(r, s, index of x) for its real pixels.
template <typename Body>
void for_each_pixel(const PoolShape& shape, const Window& of, const Body& body) {
    for (int r = 0; r < shape.kernel; ++r) {
        for (int s = 0; s < shape.kernel; ++s) {
            const int h = of.p * shape.stride + r - shape.padding;
            const int w = of.q * shape.stride + s - shape.padding;
            if (h < 0 || h >= shape.height || w < 0 || w >= shape.width) continue;
            body(r, s, ((of.n * shape.height + h) * shape.width + w) * shape.channels + of.c);
        }
    }
}

template <typename Body>
void for_each_window(const PoolShape& shape, const Body& body) {
    for (std::int64_t n = 0; n < shape.images; ++n)
        for (int p = 0; p < shape.output_height; ++p)
            for (int q = 0; q < shape.output_width; ++q)
                for (int c = 0; c < shape.channels; ++c) body(Window{n, p, q, c});
}

inline void max_pool(const PoolShape& shape, const void* x, void* y, std::uint8_t* winner, Stream) {
    for_each_window(shape, [&](const Window& window) {
        double best = 0;
        int place = -1;
        for_each_pixel(shape, window, [&](int r, int s, std::int64_t at) {
            const double value = get(shape.dtype, x, at);
            if (place >= 0 && !(value > best || std::isnan(value))) return;
            best = value;
            place = r * shape.kernel + s;
        });
        const std::int64_t to = output_index(shape, window);
        put(shape.dtype, y, to, best);
        if (winner != nullptr) winner[to] = static_cast<std::uint8_t>(place);
    });
}

inline void max_pool_gradient(const PoolShape& shape, const MaxPoolGradientArguments& arguments,
                              Stream) {
    const std::int64_t elements = shape.images * shape.height * shape.width * shape.channels;
    std::vector<double> dx(static_cast<std::size_t>(elements), 0.0);
    for_each_window(shape, [&](const Window& window) {
        const std::int64_t from = output_index(shape, window);
        double gradient = get(shape.dtype, arguments.dy0, from);
        if (arguments.dy1 != nullptr) gradient += get(shape.dtype, arguments.dy1, from);
        for_each_pixel(shape, window, [&](int r, int s, std::int64_t at) {
            if (arguments.winner[from] == r * shape.kernel + s) {
                dx[at] += gradient;
            }
        });
    });
    for (std::int64_t i = 0; i < elements; ++i) {
        put(shape.dtype, arguments.dx, i, dx[i]);
    }
}

inline void global_average_pool(const GlobalPoolShape& shape, const void* x, void* y, Stream) {
    for (std::int64_t n = 0; n < shape.images; ++n) {
        for (int c = 0; c < shape.channels; ++c) {
            double sum = 0;
            for (std::int64_t pixel = 0; pixel < shape.pixels; ++pixel) {
                sum += get(shape.dtype, x, (n * shape.pixels + pixel) * shape.channels + c);
            }
            put(shape.dtype, y, n * shape.channels + c, sum / static_cast<double>(shape.pixels));
        }
    }
}

inline void global_average_pool_gradient(const GlobalPoolShape& shape, const void* dy, void* dx,
                                         Stream) {
    const std::int64_t per_image = shape.pixels * shape.channels;
    for (std::int64_t i = 0; i < shape.images * per_image; ++i) {
        const std::int64_t from = i / per_image * shape.channels + i % shape.channels;
        put(shape.dtype, dx, i, get(shape.dtype, dy, from) / static_cast<double>(shape.pixels));
    }
}

}  // namespace hpcai::kernels::reference
