// SPDX-License-Identifier: Apache-2.0
#include "kernels/elementwise.hpp"

#include <cmath>

#include <gtest/gtest.h>

#include <hpcai/base/error.hpp>

#include "kernels/buffer.hpp"
#include "kernels/host_numbers.hpp"

namespace hpcai::kernels {
namespace reference {

inline void add(const AddArguments& arguments, Stream) {
    for (std::int64_t i = 0; i < arguments.count; ++i) {
        const double b = arguments.b == nullptr ? 0 : get(arguments.dtype, arguments.b, i);
        put(arguments.dtype, arguments.sum, i, get(arguments.dtype, arguments.a, i) + b);
    }
}

inline void relu(tensor::DType dtype, const void* x, void* y, std::int64_t count, Stream) {
    for (std::int64_t i = 0; i < count; ++i) {
        const double value = get(dtype, x, i);
        put(dtype, y, i, value <= 0 ? 0 : value);
    }
}

inline void relu_from_f32(const float* x, tensor::DType dtype, void* y, std::int64_t count,
                          Stream) {
    for (std::int64_t i = 0; i < count; ++i) put(dtype, y, i, x[i] <= 0 ? 0 : x[i]);
}

inline void relu_gradient(const ReluGradientArguments& arguments, Stream) {
    for (std::int64_t i = 0; i < arguments.count; ++i) {
        double gradient = get(arguments.dtype, arguments.dy0, i);
        if (arguments.dy1 != nullptr) gradient += get(arguments.dtype, arguments.dy1, i);
        put(arguments.dtype, arguments.dx, i,
            get(arguments.dtype, arguments.y, i) <= 0 ? 0 : gradient);
    }
}

inline void fill(tensor::DType dtype, void* to, float value, std::int64_t count, Stream) {
    for (std::int64_t i = 0; i < count; ++i) put(dtype, to, i, value);
}

}  // namespace reference

namespace {

// Less than a vector, whole vectors, a rest, and more than all threads of a grid process at once.
const std::vector<std::int64_t> kCounts{1, 3, 7, 8, 9, 64, 1000, 4099, 1056 * 256 * 16 + 13};

class ElementwiseKernels : public ForEachDtype {
protected:
    Contents contents_{1};

    /// Returns random numbers, zeros of both signs, and NaN.
    Buffer numbers(std::int64_t count) {
        Buffer buffer = contents_.normal(GetParam(), std::min<std::int64_t>(count, 5000));
        Buffer all(GetParam(), count);
        for (std::int64_t i = 0; i < count; ++i) all.set(i, buffer[i % buffer.count()]);
        const double special[] = {0.0, -0.0, NAN, INFINITY, -INFINITY};
        for (int i = 0; i < 5 && 2 * i < count; ++i) all.set(count - 1 - 2 * i, special[i]);
        return all;
    }
};

TEST_P(ElementwiseKernels, AddIsTheReferencesBitForBit) {
    for (const auto count : kCounts) {
        const Buffer a = numbers(count), b = numbers(count);
        for (const void* second : {b.data(), static_cast<const void*>(nullptr)}) {
            Buffer got(GetParam(), count), expected(GetParam(), count);
            add({GetParam(), a.data(), second, got.data(), count}, nullptr);
            reference::add({GetParam(), a.data(), second, expected.data(), count}, nullptr);
            EXPECT_TRUE(same(got, expected)) << count;
        }
    }
}

TEST_P(ElementwiseKernels, AddMayWriteOverAnOperand) {
    const Buffer a = numbers(1003), b = numbers(1003);
    Buffer got = a, expected(GetParam(), 1003);
    add({GetParam(), got.data(), b.data(), got.data(), 1003}, nullptr);
    reference::add({GetParam(), a.data(), b.data(), expected.data(), 1003}, nullptr);
    EXPECT_TRUE(same(got, expected));
}

TEST_P(ElementwiseKernels, ReluIsTheReferencesBitForBit) {
    for (const auto count : kCounts) {
        const Buffer x = numbers(count);
        Buffer got(GetParam(), count), expected(GetParam(), count);
        relu(GetParam(), x.data(), got.data(), count, nullptr);
        reference::relu(GetParam(), x.data(), expected.data(), count, nullptr);
        EXPECT_TRUE(same(got, expected)) << count;
    }
}

TEST_P(ElementwiseKernels, ReluOfFp32IsTheReferencesBitForBit) {
    for (const auto count : {1, 7, 8, 9, 1000, 4099}) {
        Buffer x = contents_.normal(DType::f32, count);
        x.set(count / 2, NAN);
        Buffer got(GetParam(), count), expected(GetParam(), count);
        relu_from_f32(x.as<float>(), GetParam(), got.data(), count, nullptr);
        reference::relu_from_f32(x.as<float>(), GetParam(), expected.data(), count, nullptr);
        EXPECT_TRUE(same(got, expected)) << count;
    }
}

TEST_P(ElementwiseKernels, ReluGradientIsTheReferencesBitForBit) {
    for (const auto count : kCounts) {
        const Buffer y = numbers(count), dy0 = numbers(count), dy1 = numbers(count);
        for (const void* second : {dy1.data(), static_cast<const void*>(nullptr)}) {
            Buffer got(GetParam(), count), expected(GetParam(), count);
            relu_gradient({GetParam(), y.data(), dy0.data(), second, got.data(), count}, nullptr);
            reference::relu_gradient(
                {GetParam(), y.data(), dy0.data(), second, expected.data(), count}, nullptr);
            EXPECT_TRUE(same(got, expected)) << count;
        }
    }
}

TEST_P(ElementwiseKernels, AgreeWithTheNaiveOperations) {
    const tensor::Shape shape{2, 3, 5, 7};
    const std::int64_t count = shape.elements();
    const Buffer x = contents_.normal(GetParam(), count),
                 other = contents_.normal(GetParam(), count);
    const Buffer dy0 = contents_.normal(GetParam(), count);
    const Buffer dy1 = contents_.normal(GetParam(), count);
    Buffer sum(GetParam(), count), y(GetParam(), count), dx(GetParam(), count);
    add({GetParam(), x.data(), other.data(), sum.data(), count}, nullptr);
    relu(GetParam(), x.data(), y.data(), count, nullptr);
    relu_gradient({GetParam(), y.data(), dy0.data(), dy1.data(), dx.data(), count}, nullptr);

    naive::Problem problem{.operation = ops::Relu{shape}};
    problem.inputs = {x.tensor(shape)};
    problem.output_gradients = {dy0.tensor(shape), dy1.tensor(shape)};
    const auto rectified = naive::solve(problem);
    EXPECT_TRUE(near(y, rectified.output, 0));
    EXPECT_TRUE(near(dx, rectified.input_gradients[0], tolerance_of(GetParam())));
    problem.operation = ops::Add{shape};
    problem.inputs.push_back(other.tensor(shape));
    EXPECT_TRUE(near(sum, naive::solve(problem).output, tolerance_of(GetParam())));
}

TEST_P(ElementwiseKernels, FillWritesEveryElementAndNoMore) {
    for (const auto count : kCounts) {
        Buffer got(GetParam(), count), expected(GetParam(), count);
        fill(GetParam(), got.data(), 0.3f, count, nullptr);
        reference::fill(GetParam(), expected.data(), 0.3f, count, nullptr);
        EXPECT_TRUE(same(got, expected)) << count;
    }
}

TEST(ElementwiseKernel, RejectsIntegers) {
    Buffer integers(DType::s32, 4);
    EXPECT_THROW(fill(DType::s32, integers.data(), 0, 4, nullptr), Error);
}

INSTANTIATE_TEST_SUITE_P(, ElementwiseKernels, testing::ValuesIn(kComputeDtypes), dtype_name);

}  // namespace
}  // namespace hpcai::kernels
