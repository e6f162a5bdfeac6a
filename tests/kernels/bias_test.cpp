// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include <gtest/gtest.h>

#include "kernels/buffer.hpp"
#include "kernels/elementwise.hpp"
#include "kernels/host_numbers.hpp"

namespace hpcai::kernels {
namespace reference {

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

}  // namespace reference

namespace {

// Vectors, two pixels in one vector, channels that are only stored, no vectors. Some shapes have
// more pixels than all threads of a grid process at once, others fewer.
const std::vector<BiasShape> kShapes{
    {DType::f32, 1, 8, 8},     {DType::f32, 126, 64, 64},   {DType::f32, 126, 12, 12},
    {DType::f32, 125, 12, 12}, {DType::f32, 126, 3, 4},     {DType::f32, 63, 3, 4},
    {DType::f32, 37, 21, 21},  {DType::f32, 64, 21, 21},    {DType::f32, 11, 600, 600},
    {DType::f32, 30001, 3, 4}, {DType::f32, 40000, 12, 12}, {DType::f32, 3000, 256, 256}};

/// Returns the tolerance of fp32 sums of so many numbers near 1, which cancel.
double sum_tolerance(std::int64_t pixels) {
    return 1e-5 + 1e-6 * std::sqrt(static_cast<double>(pixels));
}

class BiasKernels : public ForEachDtype {
protected:
    Contents contents_{31};

    Buffer image(const BiasShape& shape) {
        return contents_.normal(GetParam(), shape.pixels * shape.stored_channels);
    }
};

TEST_P(BiasKernels, AddIsTheReferencesBitForBit) {
    for (BiasShape shape : kShapes) {
        shape.dtype = GetParam();
        Buffer x = image(shape);
        x.set(0, NAN);
        const Buffer b = contents_.normal(DType::f32, shape.channels);
        for (const bool relu : {false, true}) {
            Buffer got(GetParam(), x.count()), expected(GetParam(), x.count());
            const auto* numbers = static_cast<const float*>(b.data());
            bias(shape, {x.data(), numbers, got.data(), relu}, nullptr);
            reference::bias(shape, {x.data(), numbers, expected.data(), relu}, nullptr);
            EXPECT_TRUE(same(got, expected)) << shape.pixels << " " << shape.channels;
        }
    }
}

TEST_P(BiasKernels, GradientIsTheReferences) {
    for (BiasShape shape : kShapes) {
        shape.dtype = GetParam();
        const Buffer y = image(shape), dy0 = image(shape), dy1 = image(shape);
        for (const void* output : {y.data(), static_cast<const void*>(nullptr)}) {
            for (const void* second : {dy1.data(), static_cast<const void*>(nullptr)}) {
                Buffer got(GetParam(), y.count()), expected(GetParam(), y.count());
                Buffer sum(DType::f32, shape.channels), expected_sum(DType::f32, shape.channels);
                Buffer workspace(DType::u8, static_cast<std::int64_t>(bias_workspace_bytes(shape)));
                BiasGradientArguments arguments{output,     dy0.data(),      second,
                                                got.data(), sum.as<float>(), workspace.data()};
                bias_gradient(shape, arguments, nullptr);
                arguments.dx = expected.data();
                arguments.bias_gradient = expected_sum.as<float>();
                reference::bias_gradient(shape, arguments, nullptr);
                EXPECT_TRUE(same(got, expected)) << shape.pixels << " " << shape.channels;
                EXPECT_TRUE(near(sum, expected_sum, sum_tolerance(shape.pixels)))
                    << shape.pixels << " " << shape.channels;
                EXPECT_TRUE(workspace.guard_is_intact());
            }
        }
    }
}

TEST_P(BiasKernels, GradientOfTheInputIsWrittenOnlyWhereItIsWanted) {
    const BiasShape shape{GetParam(), 99, 16, 16};
    const Buffer dy = image(shape);
    Buffer with(DType::f32, 16), without(DType::f32, 16), dx(GetParam(), dy.count());
    Buffer workspace(DType::u8, static_cast<std::int64_t>(bias_workspace_bytes(shape)));
    bias_gradient(shape,
                  {nullptr, dy.data(), nullptr, dx.data(), with.as<float>(), workspace.data()},
                  nullptr);
    bias_gradient(shape,
                  {nullptr, dy.data(), nullptr, nullptr, without.as<float>(), workspace.data()},
                  nullptr);
    EXPECT_TRUE(same(dx, dy));
    EXPECT_TRUE(same(without, with));
}

INSTANTIATE_TEST_SUITE_P(, BiasKernels, testing::ValuesIn(kComputeDtypes), dtype_name);

}  // namespace
}  // namespace hpcai::kernels
