// SPDX-License-Identifier: Apache-2.0
#include "kernels/pooling.hpp"

#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include <hpcai/base/error.hpp>

#include "kernels/buffer.hpp"
#include "kernels/host_numbers.hpp"

namespace hpcai::kernels {
namespace reference {

/// One channel of one window.
struct Window {
    std::int64_t n;
    int p, q, c;
};

inline std::int64_t output_index(const PoolShape& shape, const Window& at) {
    return ((at.n * shape.output_height + at.p) * shape.output_width + at.q) * shape.channels +
           at.c;
}

/// Calls body(r, s, index of x) for the window's pixels inside the image.
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

}  // namespace reference

namespace {

PoolShape shape_of(DType dtype, const ops::MaxPool& op) {
    const auto output = output_shape(op);
    return {
        .dtype = dtype,
        .images = op.input[0],
        .height = static_cast<int>(op.input[1]),
        .width = static_cast<int>(op.input[2]),
        .channels = static_cast<int>(op.input[3]),
        .output_height = static_cast<int>(output[1]),
        .output_width = static_cast<int>(output[2]),
        .kernel = static_cast<int>(op.kernel),
        .stride = static_cast<int>(op.stride),
        .padding = static_cast<int>(op.padding),
    };
}

// Input, kernel, stride, padding. The channels fill vectors or not, windows overlap, omit pixels or
// cover all, and some rows are longer than a block.
const std::vector<ops::MaxPool> kPools{
    {{2, 112, 20, 16}, 3, 2, 1}, {{2, 9, 8, 24}, 3, 2, 1},  {{1, 7, 7, 5}, 3, 2, 1},
    {{2, 8, 8, 8}, 2, 2, 0},     {{1, 9, 9, 3}, 2, 3, 0},   {{1, 6, 5, 8}, 3, 1, 1},
    {{1, 17, 16, 8}, 16, 1, 15}, {{1, 3, 3, 4}, 3, 2, 0},   {{1, 1, 1, 8}, 3, 2, 1},
    {{1, 8, 7, 8}, 5, 3, 2},     {{1, 3, 300, 8}, 3, 2, 1}, {{1, 4, 400, 8}, 2, 2, 0}};

constexpr double kWindowTolerance = 1e-5;  // up to 256 fp32 numbers whose sum may cancel

class Pooling : public ForEachDtype {
protected:
    Contents contents_{7};

    /// Compares both passes on this input with the naive reference.
    void compare(const ops::MaxPool& op, const Buffer& x) {
        const PoolShape shape = shape_of(GetParam(), op);
        const std::int64_t outputs = output_shape(op).elements();
        Buffer y(GetParam(), outputs), winner(DType::u8, outputs);
        Buffer twin_y(GetParam(), outputs), twin_winner(DType::u8, outputs);
        max_pool(shape, x.data(), y.data(), winner.as<std::uint8_t>(), nullptr);
        reference::max_pool(shape, x.data(), twin_y.data(), twin_winner.as<std::uint8_t>(),
                            nullptr);
        EXPECT_TRUE(same(y, twin_y));
        EXPECT_TRUE(same(winner, twin_winner));

        const Buffer dy0 = contents_.normal(GetParam(), outputs);
        const Buffer dy1 = contents_.normal(GetParam(), outputs);
        for (const void* second : {dy1.data(), static_cast<const void*>(nullptr)}) {
            Buffer dx(GetParam(), x.count()), twin_dx(GetParam(), x.count());
            MaxPoolGradientArguments of{winner.as<std::uint8_t>(), dy0.data(), second, dx.data()};
            max_pool_gradient(shape, of, nullptr);
            of.dx = twin_dx.data();
            reference::max_pool_gradient(shape, of, nullptr);
            EXPECT_TRUE(near(dx, twin_dx, kWindowTolerance + tolerance_of(GetParam())));
        }
    }
};

TEST_P(Pooling, MaximumAgreesWithItsTwin) {
    for (const auto& op : kPools) compare(op, contents_.normal(GetParam(), op.input.elements()));
}

TEST_P(Pooling, TheFirstOfEqualsWins) {
    for (const auto& op : kPools) compare(op, contents_.whole(GetParam(), op.input.elements(), 2));
}

TEST_P(Pooling, ANanWinsAndInfinitiesHaveAPlace) {
    for (const auto& op : kPools) {
        Buffer x = contents_.normal(GetParam(), op.input.elements());
        for (std::int64_t i = 0; i < x.count(); ++i) {
            if (i % 11 == 0) x.set(i, NAN);
            if (i % 11 > 4) x.set(i, -INFINITY);
        }
        compare(op, x);
    }
}

TEST_P(Pooling, MaximumAgreesWithTheNaiveOperation) {
    for (const auto& op : kPools) {
        for (const bool ties : {false, true}) {
            const Buffer x = ties ? contents_.whole(GetParam(), op.input.elements(), 3, -1)
                                  : contents_.normal(GetParam(), op.input.elements());
            const auto output = output_shape(op);
            const Buffer dy0 = contents_.normal(GetParam(), output.elements());
            const Buffer dy1 = contents_.normal(GetParam(), output.elements());
            naive::Problem problem{.operation = op};
            problem.inputs = {x.tensor(op.input)};
            problem.output_gradients = {dy0.tensor(output), dy1.tensor(output)};
            const auto expected = naive::solve(problem);

            const PoolShape shape = shape_of(GetParam(), op);
            Buffer y(GetParam(), output.elements()), winner(DType::u8, output.elements());
            Buffer dx(GetParam(), x.count());
            max_pool(shape, x.data(), y.data(), winner.as<std::uint8_t>(), nullptr);
            max_pool_gradient(shape, {winner.as<std::uint8_t>(), dy0.data(), dy1.data(), dx.data()},
                              nullptr);
            EXPECT_TRUE(near(y, expected.output, 0));
            EXPECT_TRUE(
                near(dx, expected.input_gradients[0], kWindowTolerance + tolerance_of(GetParam())));
        }
    }
}

TEST_P(Pooling, InferenceNeedsNoWinners) {
    const auto& op = kPools[1];
    const Buffer x = contents_.normal(GetParam(), op.input.elements());
    Buffer y(GetParam(), output_shape(op).elements()), expected = y;
    max_pool(shape_of(GetParam(), op), x.data(), y.data(), nullptr, nullptr);
    reference::max_pool(shape_of(GetParam(), op), x.data(), expected.data(), nullptr, nullptr);
    EXPECT_TRUE(same(y, expected));
}

TEST_P(Pooling, AverageAgreesWithTwinAndNaiveOperation) {
    for (const auto& input : std::vector<tensor::Shape>{
             {2, 7, 7, 2048}, {3, 1, 1, 8}, {2, 5, 3, 21}, {1, 14, 14, 24}}) {
        const ops::GlobalAveragePool op{input};
        const GlobalPoolShape shape{GetParam(), input[0], input[1] * input[2],
                                    static_cast<int>(input[3])};
        const auto output = output_shape(op);
        const Buffer x = contents_.normal(GetParam(), input.elements());
        const Buffer dy = contents_.normal(GetParam(), output.elements());
        Buffer y(GetParam(), output.elements()), twin_y = y;
        Buffer dx(GetParam(), input.elements()), twin_dx = dx;
        global_average_pool(shape, x.data(), y.data(), nullptr);
        reference::global_average_pool(shape, x.data(), twin_y.data(), nullptr);
        global_average_pool_gradient(shape, dy.data(), dx.data(), nullptr);
        reference::global_average_pool_gradient(shape, dy.data(), twin_dx.data(), nullptr);

        naive::Problem problem{.operation = op};
        problem.inputs = {x.tensor(input)};
        problem.output_gradients = {dy.tensor(output)};
        const auto expected = naive::solve(problem);
        const double tolerance = tolerance_of(GetParam());
        EXPECT_TRUE(near(y, twin_y, tolerance));
        EXPECT_TRUE(near(dx, twin_dx, tolerance));
        EXPECT_TRUE(near(y, expected.output, tolerance));
        EXPECT_TRUE(near(dx, expected.input_gradients[0], tolerance));
    }
}

/// A norm before a pooling, with positive and negative scales.
struct PooledNorm {
    Buffer gamma, mean, inverse_deviation, scale, shift, dgamma, dbeta;

    PooledNorm(Contents& contents, std::int64_t channels)
        : gamma(contents.normal(DType::f32, channels)),
          mean(contents.normal(DType::f32, channels)),
          inverse_deviation(contents.normal(DType::f32, channels)),
          scale(DType::f32, channels),
          shift(contents.normal(DType::f32, channels)),
          dgamma(DType::f32, channels),
          dbeta(dgamma) {
        for (std::int64_t c = 0; c < channels; ++c) {
            inverse_deviation.set(c, 0.5 + std::fabs(inverse_deviation[c]));
            scale.set(c, gamma[c] * inverse_deviation[c]);
        }
    }
    BatchNormStatistics statistics() {
        return {mean.as<float>(), inverse_deviation.as<float>(), scale.as<float>(),
                shift.as<float>()};
    }
    BatchNormGradientArguments gradient(const void* x, void* dx, Buffer& workspace) {
        return {.x = x,
                .gamma = gamma.as<float>(),
                .statistics = statistics(),
                .relu = true,
                .dx = dx,
                .gamma_gradient = dgamma.as<float>(),
                .beta_gradient = dbeta.as<float>(),
                .workspace = workspace.data()};
    }
};

/// Applies norm and ReLU, then the pooling.
void pool_normalized(const PoolShape& shape, const Buffer& x, PooledNorm& norm, Buffer& y,
                     Buffer& winner) {
    Buffer normalized(shape.dtype, x.count());
    batch_norm_apply({shape.dtype, 1, x.count() / shape.channels, shape.channels},
                     {.x = x.data(),
                      .scale = norm.scale.as<float>(),
                      .shift = norm.shift.as<float>(),
                      .y = normalized.data(),
                      .relu = true},
                     nullptr);
    max_pool(shape, normalized.data(), y.data(), winner.as<std::uint8_t>(), nullptr);
}

Buffer workspace_of(const BatchNormShape& shape) {
    return {DType::u8, static_cast<std::int64_t>(batch_norm_workspace_bytes(shape))};
}

Buffer widened(const Buffer& narrow) {
    Buffer wide(DType::f32, narrow.count());
    for (std::int64_t i = 0; i < narrow.count(); ++i) wide.set(i, narrow[i]);
    return wide;
}

// Rows longer than a block, odd sides, images smaller than a window.
const std::vector<ops::MaxPool> kNormPools{{{2, 112, 20, 16}, 3, 2, 1},
                                           {{2, 9, 8, 24}, 3, 2, 1},
                                           {{1, 1, 1, 8}, 3, 2, 1},
                                           {{1, 3, 300, 8}, 3, 2, 1}};

TEST_P(Pooling, TheNormBeforeItHasTheBitsOfItsOwnKernel) {
    for (const auto& op : kNormPools) {
        for (const double special : std::vector<double>{0, -INFINITY, NAN}) {
            const PoolShape shape = shape_of(GetParam(), op);
            PooledNorm norm(contents_, shape.channels);
            Buffer x = contents_.normal(GetParam(), op.input.elements());
            for (std::int64_t i = 0; i < x.count(); i += 11) x.set(i, special);
            Buffer y(GetParam(), output_shape(op).elements()), expected = y, winner_x = y;
            Buffer winner(DType::u8, y.count()), ignored = winner;
            pool_normalized(shape, x, norm, expected, ignored);
            batch_norm_pool(
                shape,
                {x.data(), norm.statistics(), y.data(), winner_x.data(), winner.as<std::uint8_t>()},
                nullptr);
            EXPECT_TRUE(same(y, expected)) << to_string(op.input);
        }
    }
}

/// In fp32 hardly any values of the separate kernels are equal.
TEST_P(Pooling, TheNormBeforeItHasTheGradientsOfSeparateKernelsInFp32) {
    for (const auto& op : kNormPools) {
        const PoolShape shape = shape_of(GetParam(), op), wide_shape = shape_of(DType::f32, op);
        const std::int64_t count = op.input.elements(), maxima = output_shape(op).elements();
        PooledNorm norm(contents_, shape.channels), wide_norm = norm;
        const Buffer x = contents_.normal(GetParam(), count), wide_x = widened(x);
        Buffer y(GetParam(), maxima), winner_x = y, winner(DType::u8, maxima);
        Buffer wide_y(DType::f32, maxima), wide_winner = winner;
        batch_norm_pool(
            shape,
            {x.data(), norm.statistics(), y.data(), winner_x.data(), winner.as<std::uint8_t>()},
            nullptr);
        pool_normalized(wide_shape, wide_x, wide_norm, wide_y, wide_winner);
        for (std::int64_t i = 0; i < maxima; ++i) {
            ASSERT_EQ(winner[i], wide_y[i] > 0 ? wide_winner[i] : 255) << i;
        }

        const BatchNormShape wide{DType::f32, 1, count / shape.channels, shape.channels};
        Buffer workspace = workspace_of(wide);
        const Buffer dy0 = contents_.normal(GetParam(), maxima), wide_dy0 = widened(dy0);
        const Buffer dy1 = contents_.normal(GetParam(), maxima), wide_dy1 = widened(dy1);
        for (const bool two : {true, false}) {
            Buffer dx(GetParam(), count), g(DType::f32, count), wide_dx = g;
            auto fused = norm.gradient(winner_x.data(), dx.data(), workspace);
            fused.dy0 = dy0.data();
            fused.dy1 = two ? dy1.data() : nullptr;
            batch_norm_pool_gradient(shape, {x.data(), winner.as<std::uint8_t>(), fused}, nullptr);

            max_pool_gradient(wide_shape,
                              {wide_winner.as<std::uint8_t>(), wide_dy0.data(),
                               two ? wide_dy1.data() : nullptr, g.data()},
                              nullptr);
            auto separate = wide_norm.gradient(wide_x.data(), wide_dx.data(), workspace);
            separate.dy0 = g.data();
            batch_norm_gradient_sums(wide, separate, nullptr);
            batch_norm_gradient_apply(wide, separate, nullptr);
            const double tolerance = 1e-5 + tolerance_of(GetParam());
            EXPECT_TRUE(near(dx, wide_dx, tolerance)) << to_string(op.input);
            EXPECT_TRUE(near(norm.dgamma, wide_norm.dgamma, 1e-4)) << to_string(op.input);
            EXPECT_TRUE(near(norm.dbeta, wide_norm.dbeta, 1e-4)) << to_string(op.input);
        }
    }
}

TEST(PoolingKernel, RejectsWindowsThatDoNotFit) {
    PoolShape shape{.images = 1, .height = 40, .width = 40, .channels = 8, .kernel = 17};
    EXPECT_THROW(max_pool(shape, nullptr, nullptr, nullptr, nullptr), Error);
    shape.kernel = shape.padding = 2;
    EXPECT_THROW(max_pool_gradient(shape, {}, nullptr), Error);
    // The norm needs windows of 3 x 3 with stride 2 and padding 1, and 8 channels.
    EXPECT_THROW(batch_norm_pool(shape_of(DType::f32, kPools[3]), {}, nullptr), Error);
    EXPECT_THROW(batch_norm_pool_gradient(shape_of(DType::f32, kPools[2]), {}, nullptr), Error);
}

INSTANTIATE_TEST_SUITE_P(, Pooling, testing::ValuesIn(kComputeDtypes), dtype_name);

}  // namespace
}  // namespace hpcai::kernels
