// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include <hpcai/base/error.hpp>

#include "kernels/batch_norm.hpp"
#include "kernels/buffer.hpp"

namespace hpcai::kernels {
namespace {

std::int64_t elements(const BatchNormShape& shape) {
    return shape.pixels * shape.channels;
}

/// The operands of one of the fused norms.
struct Norm {
    Buffer x, gamma, mean, inverse_deviation, dx, dgamma, dbeta;

    Norm(Contents& contents, const BatchNormShape& shape)
        : x(contents.normal(shape.dtype, elements(shape))),
          gamma(contents.normal(DType::f32, shape.channels)),
          mean(contents.normal(DType::f32, shape.channels)),
          inverse_deviation(contents.normal(DType::f32, shape.channels)),
          dx(shape.dtype, x.count()),
          dgamma(DType::f32, shape.channels),
          dbeta(dgamma) {}

    BatchNormDualGradientArguments::Norm arguments() {
        return {x.data(),
                gamma.as<float>(),
                {.mean = mean.as<float>(), .inverse_deviation = inverse_deviation.as<float>()},
                dx.data(),
                dgamma.as<float>(),
                dbeta.as<float>()};
    }
};

/// Computes the gradients with the kernels for one norm.
void form_separately(const BatchNormShape& shape, const BatchNormDualGradientArguments& fused) {
    const auto form = [&](const auto& norm, const void* dy0, const void* dy1,
                          const std::uint32_t* mask) {
        const BatchNormGradientArguments of{.x = norm.x,
                                            .dy0 = dy0,
                                            .dy1 = dy1,
                                            .gamma = norm.gamma,
                                            .statistics = norm.statistics,
                                            .relu = mask != nullptr,
                                            .mask = mask,
                                            .residual_gradient = fused.inner.dx,
                                            .dx = norm.dx,
                                            .gamma_gradient = norm.gamma_gradient,
                                            .beta_gradient = norm.beta_gradient,
                                            .workspace = fused.workspace};
        batch_norm_gradient_sums(shape, of, nullptr);
        batch_norm_gradient_apply(shape, of, nullptr);
    };
    form(fused.outer, fused.dy0, fused.dy1, fused.mask);
    form(fused.inner, fused.inner.dx, nullptr, nullptr);
}

void expect_same(const Norm& got, const Norm& want) {
    EXPECT_TRUE(same(got.dx, want.dx));
    EXPECT_TRUE(same(got.dgamma, want.dgamma));
    EXPECT_TRUE(same(got.dbeta, want.dbeta));
}

void expect_bits_of_each(const BatchNormShape& shape, bool two) {
    SCOPED_TRACE(std::to_string(shape.channels) + (two ? " channels, two" : " channels"));
    Contents contents(7);
    Norm outer(contents, shape), inner(contents, shape);
    Norm want_outer = outer, want_inner = inner;
    Buffer dy0 = contents.normal(shape.dtype, elements(shape));
    Buffer dy1 = contents.normal(shape.dtype, elements(shape));
    const auto mask_bytes = static_cast<std::int64_t>(batch_norm_mask_bytes(shape));
    const auto workspace_bytes = static_cast<std::int64_t>(batch_norm_dual_workspace_bytes(shape));
    Buffer mask = contents.whole(DType::u8, mask_bytes, 256), workspace(DType::u8, workspace_bytes);
    EXPECT_GE(workspace.bytes(), batch_norm_workspace_bytes(shape));
    BatchNormDualGradientArguments of{.outer = want_outer.arguments(),
                                      .inner = want_inner.arguments(),
                                      .dy0 = dy0.data(),
                                      .dy1 = two ? dy1.data() : nullptr,
                                      .mask = mask.as<std::uint32_t>(),
                                      .workspace = workspace.data()};
    form_separately(shape, of);
    of.outer = outer.arguments();
    of.inner = inner.arguments();
    batch_norm_dual_gradient(shape, of, nullptr);
    expect_same(outer, want_outer);
    expect_same(inner, want_inner);
    of.outer.dx = dy1.data();
    of.inner.dx = dy0.data();
    batch_norm_dual_gradient(shape, of, nullptr);
    EXPECT_TRUE(same(dy1, want_outer.dx)) << "in the memory of the output's gradient";
    EXPECT_TRUE(same(dy0, want_inner.dx)) << "in the memory of the output's gradient";
    EXPECT_TRUE(workspace.guard_is_intact());
}

class BatchNormDualGradient : public ForEachDtype {};

TEST_P(BatchNormDualGradient, HasTheBitsOfOneNormAfterTheOther) {
    for (const auto& [pixels, channels] :
         {std::pair(1, 8), {5, 16}, {105, 24}, {2046, 64}, {105, 320}, {13, 2048}}) {
        for (const bool two : {false, true}) {
            expect_bits_of_each({GetParam(), 1, pixels, channels}, two);
        }
    }
}

TEST_P(BatchNormDualGradient, RejectsSpansAndPartsOfVectors) {
    EXPECT_THROW(batch_norm_dual_gradient({GetParam(), 2, 1, 8}, {}, nullptr), Error);
    EXPECT_THROW(batch_norm_dual_gradient({GetParam(), 1, 1, 12}, {}, nullptr), Error);
}
INSTANTIATE_TEST_SUITE_P(Dtypes, BatchNormDualGradient, testing::ValuesIn(kComputeDtypes),
                         dtype_name);

}  // namespace
}  // namespace hpcai::kernels
