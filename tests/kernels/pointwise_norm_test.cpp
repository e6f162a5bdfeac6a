// SPDX-License-Identifier: Apache-2.0
#include "kernels/pointwise_norm.hpp"

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include <hpcai/base/error.hpp>

#include "kernels/buffer.hpp"

namespace hpcai::kernels {
namespace {

class PointwiseNormKernels : public testing::TestWithParam<DType> {
protected:
    Contents contents_{7};
};

Buffer doubles(std::int64_t count) {
    return {DType::u8, 8 * count};
}

TEST_P(PointwiseNormKernels, SumWhatAMaskPassesAndStoreIt) {
    const BatchNormShape shape{GetParam(), 1, 301, 24};
    const std::int64_t count = shape.pixels * shape.channels;
    const Buffer x = contents_.whole(GetParam(), count, 9, -4);
    const Buffer second = contents_.whole(GetParam(), count, 9, -4);
    Buffer mask = contents_.whole(DType::u8, (count + 31) / 32 * 4, 255, 0);
    Buffer workspace(DType::u8, static_cast<std::int64_t>(batch_norm_workspace_bytes(shape)));
    for (const int form : {0, 1, 2}) {  // the sum, with a mask, of two tensors with a mask
        Buffer masked(GetParam(), count), sums = doubles(shape.channels);
        column_sums(shape,
                    {.x = x.data(),
                     .second = form == 2 ? second.data() : nullptr,
                     .mask = form > 0 ? mask.as<std::uint32_t>() : nullptr,
                     .masked = form > 0 ? masked.data() : nullptr,
                     .sums = sums.as<double>(),
                     .workspace = workspace.data()},
                    nullptr);
        std::vector<double> expected(static_cast<std::size_t>(shape.channels));
        for (std::int64_t i = 0; i < count; ++i) {
            const bool passes = form == 0 || static_cast<int>(mask[i / 8]) >> i % 8 & 1;
            const double value = passes ? x[i] + (form == 2 ? second[i] : 0) : 0;
            if (form > 0) {
                ASSERT_EQ(masked[i], value) << i;
            }
            expected[static_cast<std::size_t>(i % shape.channels)] += value;
        }
        for (std::int64_t c = 0; c < shape.channels; ++c) {
            EXPECT_EQ(sums.as<double>()[c], expected[static_cast<std::size_t>(c)]) << c;
        }
    }
}

/// dx = g (a w) + (x M f + bias) / f, and the sums of x and g are s and sum(g).
TEST_P(PointwiseNormKernels, MakeTheSumsOfTheInputGradientZero) {
    const PointwiseShape shape{GetParam(), 1000, 40, 136};
    const std::int64_t inputs = shape.inputs, outputs = shape.outputs;
    for (const double size : {1e-9, 1.0, 1e9}) {
        Buffer square(DType::f32, inputs * inputs), slopes(DType::f32, outputs);
        Buffer constants(DType::f32, outputs), sums = doubles(inputs);
        Buffer gradient_sums = doubles(outputs);
        Buffer weights = contents_.normal(GetParam(), outputs * inputs);
        const Buffer numbers = contents_.normal(DType::f32, inputs * inputs);
        for (std::int64_t j = 0; j < inputs; ++j) {
            sums.as<double>()[j] = 900 * numbers[j];
            for (std::int64_t k = 0; k < inputs; ++k) {
                square.set(j * inputs + k,
                           size * numbers[std::min(j, k) * inputs + std::max(j, k)]);
            }
        }
        for (std::int64_t c = 0; c < outputs; ++c) {
            slopes.set(c, size * numbers[c]);
            constants.set(c, size * numbers[outputs + c]);
            gradient_sums.as<double>()[c] = 1000 * size * numbers[2 * outputs + c];
        }
        Buffer rounded(GetParam(), inputs * inputs), bias(GetParam(), inputs);
        Buffer factors(DType::f32, 2);
        pointwise_factors(shape,
                          {square.as<float>(), weights.data(), sums.as<double>(),
                           gradient_sums.as<double>(), slopes.as<float>(), constants.as<float>(),
                           rounded.data(), bias.data(), factors.as<float>()},
                          nullptr);
        EXPECT_EQ(factors[0], 1);
        const double factor = 1 / factors[1];
        EXPECT_EQ(factor, std::exp2(std::round(std::log2(factor))));
        EXPECT_LT(factor * size, 1);
        for (std::int64_t k = 0; k < inputs; ++k) {
            double sum = 0, magnitude = 0;
            const auto add = [&](double term) {
                sum += term;
                magnitude += std::abs(term);
            };
            for (std::int64_t j = 0; j < inputs; ++j) {
                const std::int64_t at = j * inputs + k;
                EXPECT_NEAR(rounded[at], factor * square[at], 16 * tolerance_of(GetParam()));
                add(rounded[at] * sums.as<double>()[j]);
            }
            for (std::int64_t c = 0; c < outputs; ++c) {
                add(factor * weights[c * inputs + k] * gradient_sums.as<double>()[c]);
            }
            add(static_cast<double>(shape.pixels) * bias[k]);
            EXPECT_LE(std::abs(sum), tolerance_of(GetParam()) * magnitude / 500) << k;
        }
    }
}

TEST(PointwiseNormKernel, RejectsColumnsThatDoNotFillVectors) {
    EXPECT_THROW(column_sums({DType::f16, 1, 4, 12}, {}, nullptr), Error);
    EXPECT_THROW(column_sums({DType::f16, 2, 4, 16}, {}, nullptr), Error);
}

INSTANTIATE_TEST_SUITE_P(, PointwiseNormKernels, testing::ValuesIn(kComputeDtypes), dtype_name);

}  // namespace
}  // namespace hpcai::kernels
