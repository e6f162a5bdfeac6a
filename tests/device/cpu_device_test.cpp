// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "device/kernel_runner.hpp"
#include "support/naive_random.hpp"
#include "support/sgd_step.hpp"

namespace hpcai::device {
namespace {

TEST(CpuDevice, MemoryIsZeroedAndAligned) {
    const auto device = make_cpu_device({});
    for (const std::size_t bytes : {std::size_t{0}, std::size_t{1}, std::size_t{3} << 20}) {
        const auto memory = device->allocate(bytes);
        EXPECT_EQ(memory->bytes(), bytes);
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory->data()) % 64, 0u);
        const auto* first = static_cast<const unsigned char*>(memory->data());
        EXPECT_TRUE(std::all_of(first, first + bytes, [](unsigned char b) { return b == 0; }));
    }
}

TEST(CpuDevice, DownloadsWhatWasUploaded) {
    const auto device = make_cpu_device({});
    const auto memory = device->allocate(12);
    const std::vector<float> values{1, -2, 3};
    std::vector<float> back(3);
    device->upload(memory->data(), std::as_bytes(std::span(values)));
    device->download(std::as_writable_bytes(std::span(back)), memory->data());
    EXPECT_EQ(back, values);
    device->upload(nullptr, {});
    device->download({}, nullptr);
}

TEST(CpuDevice, ComputesInFp32AndNamesItself) {
    const auto device = make_cpu_device({.threads = 2});
    EXPECT_THAT(device->compute_dtypes(), testing::Contains(tensor::DType::f32));
    EXPECT_EQ(device->threads(), 2);
    EXPECT_THAT(device->description(), testing::HasSubstr("2 threads of "));
}

TEST(CpuDevice, CountsNoMoreAllowedCoresThanThereAre) {
    const Cores cores = count_cores();
    EXPECT_GE(cores.allowed, 1);
    EXPECT_LE(cores.allowed, cores.machine);
}

TEST(ThreadsForRank, AreThoseWantedElseTheBoundCoresElseAShareOfTheMachine) {
    EXPECT_EQ(threads_for_rank(3, {64, 64}, 4), 3);
    EXPECT_EQ(threads_for_rank(0, {64, 8}, 1), 8);
    EXPECT_EQ(threads_for_rank(0, {64, 32}, 4), 8);
    EXPECT_EQ(threads_for_rank(0, {64, 64}, 4), 16);
    EXPECT_EQ(threads_for_rank(0, {64, 64}, 1), 64);
    EXPECT_EQ(threads_for_rank(0, {2, 2}, 4), 1);
}

TEST(CpuDevice, RefusesAPrecisionItCannotComputeIn) {
    const auto device = make_cpu_device({});
    const ops::Convolution op{.input = {2, 4, 4, 16}, .filters = 16};
    EXPECT_THROW(device->build(op, {.compute = tensor::DType::f16}), Error);
}

class Storage : public testing::TestWithParam<DeviceRow> {};

TEST_P(Storage, LoadsWhatWasStored) {
    const auto device = GetParam().make();
    naive::Random random(GetParam().compute, 8);
    for (const tensor::Shape& shape :
         {tensor::Shape{2, 3, 5, 3}, {2, 3, 5, 16}, {1, 2, 2, 40}, {3, 7}, {9}}) {
        const auto tensor = random.normal(shape);
        const std::vector<float> values(tensor.values.begin(), tensor.values.end());
        std::vector<float> back(values.size());
        const Buffer memory(*device, storage_bytes(shape, GetParam().compute));
        device->store_channels_last(memory.data(), shape, GetParam().compute, values);
        device->load_channels_last(back, shape, GetParam().compute, memory.data());
        EXPECT_EQ(back, values);
        EXPECT_TRUE(memory.guard_is_whole());
    }
}

TEST_P(Storage, RoundsToNearestEven) {
    const auto device = GetParam().make();
    const std::vector<float> values{1 + 0x1p-8f, 1 + 3 * 0x1p-8f, 1 + 0x1.8p-8f, -1 - 0x1p-9f};
    std::vector<float> back(4);
    const Buffer memory(*device, 16);
    device->store_channels_last(memory.data(), {4}, GetParam().compute, values);
    device->load_channels_last(back, {4}, GetParam().compute, memory.data());
    for (std::size_t i = 0; i < 4; ++i) {
        EXPECT_EQ(back[i], naive::round_to(GetParam().compute, values[i]));
    }
}

TEST_P(Storage, RefusesAnotherNumberOfValues) {
    const auto device = GetParam().make();
    std::vector<float> values(7);
    const Buffer memory(*device, 64);
    EXPECT_THROW(device->store_channels_last(memory.data(), {8}, GetParam().compute, values),
                 Error);
    EXPECT_THROW(device->load_channels_last(values, {2, 4}, GetParam().compute, memory.data()),
                 Error);
    EXPECT_THROW(device->store_channels_last(memory.data(), {7}, tensor::DType::u8, values), Error);
    EXPECT_THROW(device->store_channels_last(memory.data(), {7, 1, 1}, GetParam().compute, values),
                 Error);
}

INSTANTIATE_TEST_SUITE_P(Devices, Storage, testing::ValuesIn(device_rows()),
                         [](const auto& test) { return to_string(test.param); });

/// The optimizer step in doubles, over steps with a constant gradient.
struct SgdCase {
    Sgd sgd;
    double learning_rate;
    std::size_t length;
    int threads;
};

class SgdOf : public testing::TestWithParam<SgdCase> {};

TEST_P(SgdOf, AgreesWithReference) {
    const auto& [sgd, learning_rate, length, threads] = GetParam();
    const auto device = make_cpu_device({.threads = threads});
    naive::Random random(tensor::DType::f32, 9);
    const tensor::Shape shape{static_cast<std::int64_t>(length)};
    const auto gradient = random.normal(shape);
    auto parameter = random.normal(shape), velocity = random.normal(shape);
    std::vector<float> w(parameter.values.begin(), parameter.values.end()),
        g(gradient.values.begin(), gradient.values.end()),
        v(velocity.values.begin(), velocity.values.end());
    SgdSteps steps(*device, sgd, {w, g, v, nullptr});
    for (int repeat = 0; repeat < 3; ++repeat) {
        steps.step(learning_rate);
        for (std::size_t i = 0; i < length; ++i) {
            const double slope = gradient.values[i] + sgd.weight_decay * parameter.values[i];
            double& speed = velocity.values[i];
            speed = sgd.momentum * speed + slope;
            parameter.values[i] -=
                learning_rate * (sgd.nesterov ? slope + sgd.momentum * speed : speed);
        }
    }
    for (std::size_t i = 0; i < length; ++i) {
        ASSERT_NEAR(w[i], parameter.values[i], 1e-5) << i;
        ASSERT_NEAR(v[i], velocity.values[i], 1e-5) << i;
    }
}

INSTANTIATE_TEST_SUITE_P(Cpu, SgdOf,
                         testing::Values(SgdCase{{0.9f, 1e-2f, false, {}}, 0.1, 100, 1},
                                         SgdCase{{0.9f, 1e-2f, true, {}}, 0.1, 100, 1},
                                         SgdCase{{0, 0, false, {}}, 0.5, 1, 2},
                                         SgdCase{{0.9f, 0, false, {}}, 0.1, (1 << 15) + 7, 2},
                                         SgdCase{{0.9f, 0, false, {}}, 0.1, 0, 2}));

}  // namespace
}  // namespace hpcai::device
