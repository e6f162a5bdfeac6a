// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "kernels/buffer.hpp"
#include "kernels/reference/batch_norm.hpp"

namespace hpcai::kernels {
namespace {

/// Returns dx of one engine, computed in the gradient's memory with given coefficients.
Buffer applied(decltype(&batch_norm_gradient_apply) apply, const BatchNormShape& shape, Buffer& x,
               Buffer g, Buffer& coefficients) {
    apply(
        shape,
        {.x = x.data(), .dy0 = g.data(), .dx = g.data(), .coefficients = coefficients.as<float>()},
        nullptr);
    return g;
}

TEST(BatchNormCoefficients, MakeTheGradientForAnySourceOfTheSums) {
    for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
        for (const std::int64_t channels : {8, 24, 5}) {
            const BatchNormShape shape{dtype, 2, 37, channels};
            const std::int64_t count = shape.spans * shape.pixels * channels;
            Contents contents(3);
            Buffer x = contents.normal(dtype, count), g = contents.normal(dtype, count);
            Buffer factors = contents.normal(DType::f32, 3 * shape.spans * channels);
            const Buffer got = applied(batch_norm_gradient_apply, shape, x, g, factors);
            const Buffer twin = applied(reference::batch_norm_gradient_apply, shape, x, g, factors);
            const double tolerance = dtype == DType::f32 ? 1e-6 : dtype == DType::f16 ? 5e-4 : 4e-3;
            for (std::int64_t i = 0; i < count; ++i) {
                const std::int64_t at = i / (shape.pixels * channels) * channels + i % channels;
                const std::int64_t all = shape.spans * channels;
                const double want =
                    factors[at] * g[i] + factors[all + at] * x[i] + factors[2 * all + at];
                ASSERT_NEAR(got[i], want, tolerance * (1 + std::abs(want))) << i;
                ASSERT_NEAR(twin[i], want, tolerance * (1 + std::abs(want))) << i;
            }
            EXPECT_TRUE(got.guard_is_intact());
        }
    }
}

}  // namespace
}  // namespace hpcai::kernels
