// SPDX-License-Identifier: Apache-2.0
#include "device/cuda/cuda_device.hpp"

#include <cmath>
#include <limits>
#include <stdexcept>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <hpcai/base/error.hpp>
#include <hpcai/device/cpu_device.hpp>
#include <hpcai/reference/load_values.hpp>

#include "array.hpp"
#include "simt/streams.hpp"

namespace hpcai::device {
namespace {

using tensor::DType;
using testing::HasSubstr;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

std::string message_of(const std::function<void()>& action) {
    try {
        action();
    } catch (const Error& error) {
        return error.what();
    }
    return "nothing was thrown";
}

/// A CUDA device whose streams run as early or as late as CUDA allows.
class CudaDevice : public testing::TestWithParam<simt::Order> {
protected:
    CudaDevice() { simt::set_order(GetParam()); }
    ~CudaDevice() override { simt::set_order(simt::Order::late); }

    std::unique_ptr<Device> make(CudaDeviceOptions options = {}) {
        options.autotune = false;
        return cuda::make_cuda_device(options);
    }
};

TEST_P(CudaDevice, GivesZeroedAlignedMemory) {
    const auto device = make();
    for (const std::size_t bytes : {0, 1, 3 << 20}) {
        const auto memory = device->allocate(bytes);
        EXPECT_EQ(memory->bytes(), bytes);
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory->data()) % 256, 0u);
        std::vector<std::byte> back(bytes, std::byte{7});
        device->download(back, memory->data());
        EXPECT_TRUE(std::all_of(back.begin(), back.end(), [](auto b) { return b == std::byte{}; }));
    }
}

TEST_P(CudaDevice, NamesTheBytesThatItDoesNotHave) {
    const auto device = make();
    EXPECT_THAT(message_of([&] { device->allocate(std::size_t{1} << 40); }),
                testing::AllOf(HasSubstr("1048576 MiB of GPU memory"), HasSubstr("free")));
    EXPECT_NO_THROW(device->allocate(1));
}

TEST_P(CudaDevice, DownloadsWhatWasUploadedInManyChunks) {
    const auto device = make();
    std::vector<float> values((std::size_t{20} << 20) / sizeof(float) + 3);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 65521);
    EXPECT_EQ(Array<float>(*device, values).read(), values);
    device->upload(nullptr, {});
    device->download({}, nullptr);
    device->enqueue_upload(nullptr, {});
}

TEST_P(CudaDevice, RecordsWorkWithoutDoingItAndRepeatsIt) {
    const auto device = make();
    const Array<float> input(*device, {1, 2, 3}), output(*device, {0, 0, 0});
    const auto kernel = twice(*device, input, output.data());
    EXPECT_TRUE(device->can_record());
    const auto recording = device->record([&] { kernel->run(ops::Pass::forward); });
    EXPECT_EQ(output.read(), (std::vector<float>{0, 0, 0}));
    recording->run();
    EXPECT_EQ(output.read(), (std::vector<float>{2, 4, 6}));
    const std::vector<float> other{5, 6, 7};
    device->enqueue_upload(input.data(), std::as_bytes(std::span(other)));
    recording->run();
    EXPECT_EQ(output.read(), (std::vector<float>{10, 12, 14}));
}

TEST_P(CudaDevice, TimesItsWorkByTheDevicesClock) {
    const auto device = make();
    constexpr double kTolerance = 20;  // seconds that the test may take in real time
    double scale = 1000;
    const auto enqueue = [&](device::Timeline& timeline) {
        timeline.mark();
        for (const int factor : {1, 3}) {
            simt::enqueue(cuda::context_of(*device).stream,
                          [&scale, factor] { simt::pretend(factor * scale); });
            timeline.mark();
        }
    };
    const auto expect_times = [&](const device::Timeline& timeline) {
        const std::vector<double> seconds = timeline.seconds();
        ASSERT_EQ(seconds.size(), 2u);
        EXPECT_NEAR(seconds[0], scale, kTolerance);
        EXPECT_NEAR(seconds[1], 3 * scale, kTolerance);
    };
    const auto once = device->make_timeline();
    EXPECT_TRUE(once->seconds().empty());
    enqueue(*once);
    expect_times(*once);

    const auto timeline = device->make_timeline();
    const auto recording = device->record([&] { enqueue(*timeline); });
    for (const double next : {500, 2000}) {
        scale = next;
        recording->run();
        expect_times(*timeline);
    }
}

TEST_P(CudaDevice, WorksOnAfterARecordingThatFailed) {
    const auto device = make();
    const Array<float> input(*device, {1, 2, 3}), output(*device, {0, 0, 0});
    const auto kernel = twice(*device, input, output.data());
    EXPECT_THROW(device->record([&] {
        kernel->run(ops::Pass::forward);
        throw std::runtime_error("half way");
    }),
                 std::runtime_error);
    EXPECT_THAT(message_of([&] { device->record([&] { device->synchronize(); }); }),
                HasSubstr("internal error"));
    EXPECT_EQ(output.read(), (std::vector<float>{0, 0, 0}));
    kernel->run(ops::Pass::forward);
    EXPECT_EQ(output.read(), (std::vector<float>{2, 4, 6}));
    device->record([&] { kernel->run(ops::Pass::forward); })->run();
    device->synchronize();
}

TEST_P(CudaDevice, ReportsTheFailureOfAKernelWhereItIsWaitedFor) {
    const auto device = make();
    const auto fail = [] { throw std::runtime_error("a kernel went wrong"); };
    simt::enqueue(cuda::context_of(*device).stream, fail);
    EXPECT_THAT(message_of([&] { device->synchronize(); }),
                HasSubstr("waiting for the device: a kernel went wrong"));
    std::vector<std::byte> bytes(4);
    EXPECT_THROW(device->upload(nullptr, bytes), Error);
}

TEST_P(CudaDevice, HashesBitsLikeAnyDevice) {
    const auto device = make(), cpu = make_cpu_device({});
    for (const std::size_t count : {0, 1, 2, 3, 1000, 70001}) {
        std::vector<float> values(count);
        for (std::size_t i = 0; i < count; ++i) values[i] = std::sin(static_cast<float>(i));
        EXPECT_EQ(device->hash(Array<float>(*device, values).span()), cpu->hash(values));
    }
}

/// Four training steps on `device`: an ordinary one, one with an infinity, and two more.
struct Steps {
    std::vector<float> parameters;
    StepScalars numbers;
};
Steps take_steps(Device& device, const Optimizer& optimizer) {
    std::vector<float> values(100), slopes(100);
    for (std::size_t i = 0; i < values.size(); ++i) {
        values[i] = std::cos(static_cast<float>(i));
        slopes[i] = std::sin(static_cast<float>(3 * i));
    }
    const Array<float> parameters(device, values), gradients(device, slopes),
        first(device, std::vector<float>(100)), second(device, std::vector<float>(100)),
        losses(device, {0.5f, 1.5f, 0.25f});
    const Array<StepScalars> numbers(
        device, {{.learning_rate = 0.1f, .loss_scale = 8, .gradient_factor = 0.125f}});
    const auto update = device.build(
        optimizer,
        {parameters.span(), gradients.span(), {first.span(), second.span()}, numbers.data()});
    for (const bool breaks : {false, true, false, false}) {
        slopes[97] = breaks ? kInfinity : 1;
        device.enqueue_upload(gradients.data(), std::as_bytes(std::span(slopes)));
        device.add_losses(losses.span(), numbers.data());
        device.check_finite(gradients.span(), numbers.data());
        update->run();
        device.finish_step({.dynamic = true, .good_steps_to_double = 2, .loss_weight = 0.5f},
                           numbers.data());
    }
    return {parameters.read(), numbers.read()[0]};
}

TEST_P(CudaDevice, TakesTheStepsOfTheCpu) {
    const auto device = make(), cpu = make_cpu_device({});
    const std::vector<std::vector<Optimizer::Range>> cases{
        {},
        {{0, 100, true, true}},
        {{0, 0, true}, {8, 21, false, true}, {24, 64, true}, {88, 100, false}}};
    for (const OptimizerRule& rule :
         {OptimizerRule(Sgd{0.9f, true}), OptimizerRule(Lars{0.9f}), OptimizerRule(Lamb{}),
          OptimizerRule(Adam{}), OptimizerRule(AdaGrad{})}) {
        for (const auto& ranges : cases) {
            const Optimizer optimizer{rule, 0.01f, ranges};
            const Steps got = take_steps(*device, optimizer), want = take_steps(*cpu, optimizer);
            for (std::size_t i = 0; i < 100; ++i) {
                EXPECT_NEAR(got.parameters[i], want.parameters[i], 1e-6)
                    << rule.index() << " " << i;
            }
            EXPECT_EQ(got.numbers.loss_scale, want.numbers.loss_scale);
            EXPECT_EQ(got.numbers.loss_scale, 8);
            EXPECT_EQ(got.numbers.gradient_factor, want.numbers.gradient_factor);
            EXPECT_EQ(got.numbers.skipped_steps, 1u);
            EXPECT_EQ(got.numbers.taken_steps, 3u);
            EXPECT_EQ(got.numbers.good_steps, want.numbers.good_steps);
            EXPECT_EQ(got.numbers.loss_sum, 9);
        }
    }
}

TEST_P(CudaDevice, StoresImagesOfThreeChannelsWithAFourthOfZeros) {
    const auto device = make();
    EXPECT_EQ(device->storage_bytes({2, 3, 5, 3}, DType::f16), 2u * 3 * 5 * 4 * 2);
    EXPECT_EQ(device->storage_bytes({2, 3, 5, 3}, DType::u8), 2u * 3 * 5 * 3);
    EXPECT_EQ(device->storage_bytes({2, 3}, DType::f32), 24u);
    const Array<float> memory(*device, std::vector<float>(9, 7));
    const std::vector<float> values{1, 2, 3, 4, 5, 6};
    device->store_channels_last(memory.data(), {1, 1, 2, 3}, DType::f32, values);
    EXPECT_EQ(memory.read(), (std::vector<float>{1, 2, 3, 0, 4, 5, 6, 0, 7}));
    std::vector<float> back(6);
    load_channels_last(*device, back, {1, 1, 2, 3}, DType::f32, memory.data());
    EXPECT_EQ(back, values);
}

TEST_P(CudaDevice, StoresMoreThanItSendsAtOnce) {
    const auto device = make();
    for (const tensor::Shape& shape : {tensor::Shape{1, 1000, 900, 3}, {2'200'003}}) {
        std::vector<float> values(static_cast<std::size_t>(shape.elements()));
        for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 2039);
        std::vector<float> back(values.size());
        const auto memory = device->allocate(device->storage_bytes(shape, DType::f16));
        device->store_channels_last(memory->data(), shape, DType::f16, values);
        load_channels_last(*device, back, shape, DType::f16, memory->data());
        EXPECT_TRUE(back == values) << to_string(shape);
    }
}

TEST_P(CudaDevice, RoundsWhatItStoresToNearestEven) {
    const auto device = make();
    const Array<float> memory(*device, std::vector<float>(4));
    const auto stored = [&](DType dtype, std::vector<float> values) {
        device->store_channels_last(memory.data(), {4}, dtype, values);
        load_channels_last(*device, values, {4}, dtype, memory.data());
        return values;
    };
    EXPECT_EQ(stored(DType::bf16, {1 + 0x1p-8f, 1 + 3 * 0x1p-8f, 1 + 0x1.8p-8f, -kInfinity}),
              (std::vector<float>{1, 1 + 0x1p-6f, 1 + 0x1p-7f, -kInfinity}));
    EXPECT_EQ(stored(DType::f16, {1 + 0x1p-11f, 65519, 65520, -1e9f}),
              (std::vector<float>{1, 65504, kInfinity, -kInfinity}));
}

TEST_P(CudaDevice, RejectsAnotherNumberOfValues) {
    const auto device = make();
    std::vector<float> values(7);
    const Array<float> memory(*device, std::vector<float>(16));
    EXPECT_THROW(device->store_channels_last(memory.data(), {8}, DType::f32, values), Error);
    EXPECT_THROW(device->store_channels_last(memory.data(), {7}, DType::u8, values), Error);
    EXPECT_THROW(device->store_channels_last(memory.data(), {7, 1, 1}, DType::f32, values), Error);
    EXPECT_THROW(device->build(ops::Relu{{4}}, {.compute = DType::s32}), Error);
}

TEST_P(CudaDevice, ReportsWhatItIsAndPromises) {
    const auto device = make();
    EXPECT_THAT(device->description(), HasSubstr("(device 0, 4 GiB), CUDA 13.0, driver for CUDA "));
    EXPECT_EQ(device->threads(), 1);
    EXPECT_TRUE(device->has_tf32());
    EXPECT_FALSE(device->determinism().is_repeatable);
    const auto deterministic = make({.deterministic = true});
    EXPECT_TRUE(deterministic->determinism().is_repeatable);
    EXPECT_THAT(deterministic->determinism().conditions, HasSubstr("cuDNN 9."));
    EXPECT_THROW(make({.index = 1}), Error);
    EXPECT_THROW(cuda::context_of(*make_cpu_device({})), Error);
}

INSTANTIATE_TEST_SUITE_P(OnCpu, CudaDevice, testing::Values(simt::Order::late, simt::Order::early),
                         [](const auto& test) {
                             return test.param == simt::Order::late ? "late" : "early";
                         });

}  // namespace
}  // namespace hpcai::device
