// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <gtest/gtest.h>

#include <hpcai/base/error.hpp>
#include <hpcai/device/cpu_device.hpp>
#include <hpcai/reference/load_values.hpp>

#include "kernels/buffer.hpp"
#include "kernels/elementwise.hpp"
#include "kernels/host_numbers.hpp"

namespace hpcai::kernels {
namespace reference {

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

}  // namespace reference

namespace {

ops::InputNormalize operation(const tensor::Shape& shape) {
    ops::InputNormalize op{shape, {}, {}};
    for (std::int64_t c = 0; c < shape[3]; ++c) {
        op.mean.push_back(0.3 + 0.02 * static_cast<double>(c));
        op.standard_deviation.push_back(0.2 + 0.01 * static_cast<double>(c));
    }
    return op;
}

NormalizeArguments arguments_of(const ops::InputNormalize& op, Buffer& pixels, Buffer& to) {
    NormalizeArguments arguments;
    arguments.pixels = pixels.as<std::uint8_t>();
    arguments.dtype = to.dtype();
    arguments.normalized = to.data();
    arguments.channels = static_cast<int>(op.input[3]);
    arguments.count = pixels.count() / op.input[3];
    arguments.padded_channels = static_cast<int>(to.count() / arguments.count);
    std::fill_n(arguments.shift, NormalizeArguments::kMaxChannels, 7.0f);  // of unused channels
    for (std::size_t c = 0; c < op.mean.size(); ++c) {
        arguments.scale[c] = static_cast<float>(1 / (255 * op.standard_deviation[c]));
        arguments.shift[c] = static_cast<float>(-op.mean[c] / op.standard_deviation[c]);
    }
    return arguments;
}

class InputNormalizeKernel : public ForEachDtype {};

TEST_P(InputNormalizeKernel, IsTheReferencesBitForBit) {
    Contents contents(4);
    for (const auto& [channels, padded] : std::vector<std::array<int, 2>>{
             {3, 4}, {1, 4}, {4, 4}, {1, 1}, {3, 3}, {20, 24}, {32, 32}}) {
        for (const std::int64_t size : {1, 3, 19, 32}) {
            const auto op = operation({3, size, size, channels});
            Buffer pixels = contents.whole(DType::u8, op.input.elements(), 256);
            const std::int64_t count = 3 * size * size * padded;
            Buffer got(GetParam(), count), expected(GetParam(), count);
            input_normalize(arguments_of(op, pixels, got), nullptr);
            reference::input_normalize(arguments_of(op, pixels, expected), nullptr);
            EXPECT_TRUE(same(got, expected)) << channels << " " << padded << " " << size;
        }
    }
}

TEST_P(InputNormalizeKernel, AgreesWithTheNaiveOperationAndPadsWithZero) {
    Contents contents(5);
    const auto op = operation({2, 7, 5, 3});
    Buffer pixels = contents.whole(DType::u8, op.input.elements(), 256);
    Buffer got(GetParam(), 2 * 7 * 5 * 4);
    input_normalize(arguments_of(op, pixels, got), nullptr);
    naive::Problem problem{.operation = op};
    problem.inputs = {pixels.tensor(op.input)};
    const auto expected = naive::solve(problem).output;
    for (std::int64_t i = 0; i < got.count(); ++i) {
        const double value = i % 4 < 3 ? expected[i / 4 * 3 + i % 4] : 0;
        EXPECT_NEAR(got[i], value, 3 * tolerance_of(GetParam()));
    }
}

TEST(InputNormalizeTwin, HasTheBitsOfTheCpuDevice) {
    Contents contents(6);
    const auto op = operation({2, 16, 16, 3});
    Buffer pixels = contents.whole(DType::u8, op.input.elements(), 256);
    Buffer got(DType::f32, 2 * 16 * 16 * 4);
    input_normalize(arguments_of(op, pixels, got), nullptr);

    const auto device = device::make_cpu_device({});
    const auto kernel = device->build(op, {});
    Buffer output(DType::f32, op.input.elements()), flat(DType::f32, op.input.elements());
    kernel->bind({.inputs = {pixels.data()}, .output = output.data()});
    kernel->run(ops::Pass::forward);
    device::load_channels_last(*device, {flat.as<float>(), static_cast<std::size_t>(flat.count())},
                               op.input, DType::f32, output.data());
    for (std::int64_t i = 0; i < flat.count(); ++i) EXPECT_EQ(got[i / 3 * 4 + i % 3], flat[i]);
}

TEST(InputNormalizeTwin, RejectsChannelsThatDoNotFit) {
    NormalizeArguments arguments;
    arguments.channels = 33;
    arguments.padded_channels = 40;
    EXPECT_THROW(input_normalize(arguments, nullptr), Error);
    arguments.channels = 4;
    arguments.padded_channels = 3;
    EXPECT_THROW(input_normalize(arguments, nullptr), Error);
}

INSTANTIATE_TEST_SUITE_P(, InputNormalizeKernel, testing::ValuesIn(kComputeDtypes), dtype_name);

}  // namespace
}  // namespace hpcai::kernels
