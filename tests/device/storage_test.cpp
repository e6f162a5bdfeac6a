// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include <gtest/gtest.h>

#include <hpcai/reference/naive_random.hpp>

#include "device/kernel_runner.hpp"

/// Memory and transfers of devices.
namespace hpcai::device {
namespace {

class Storage : public testing::TestWithParam<DeviceRow> {};

std::vector<float> numbers(std::size_t count, std::uint32_t stream) {
    naive::Random random(tensor::DType::f32, stream);
    const naive::Tensor tensor = random.normal({static_cast<std::int64_t>(count)});
    return {tensor.values.begin(), tensor.values.end()};
}

std::vector<float> download(Device& device, const void* from, std::size_t count) {
    std::vector<float> values(count, std::numeric_limits<float>::quiet_NaN());
    device.download(std::as_writable_bytes(std::span(values)), from);
    return values;
}

TEST_P(Storage, MemoryIsZeroedAndAligned) {
    const auto device = GetParam().make();
    for (const std::size_t bytes : {std::size_t{0}, std::size_t{1}, std::size_t{3} << 20}) {
        const auto memory = device->allocate(bytes);
        EXPECT_EQ(memory->bytes(), bytes);
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory->data()) % 64, 0u);
        std::vector<std::byte> back(bytes, std::byte{1});
        device->download(back, memory->data());
        EXPECT_TRUE(
            std::all_of(back.begin(), back.end(), [](auto byte) { return byte == std::byte{}; }));
    }
}

TEST(HostMemory, NamesTheSizeThatCannotBeAllocated) {
    try {
        make_cpu_device(CpuDeviceOptions{})->allocate(std::size_t{1} << 56);
        ADD_FAILURE() << "no error";
    } catch (const Error& error) {
        EXPECT_EQ(std::string(error.what()).find("cannot allocate 68719476736 MiB of host"), 0u);
    }
}

TEST_P(Storage, DownloadsWhatWasUploaded) {
    const auto device = GetParam().make();
    for (const std::size_t count : {std::size_t{3}, (std::size_t{9} << 20) / sizeof(float)}) {
        const auto memory = device->allocate(count * sizeof(float));
        const std::vector<float> values = numbers(count, 70);
        device->upload(memory->data(), std::as_bytes(std::span(values)));
        EXPECT_EQ(download(*device, memory->data(), count), values);
    }
    device->upload(nullptr, {});
    device->enqueue_upload(nullptr, {});
    device->download({}, nullptr);
}

TEST_P(Storage, TakesCopiesOfWhatItIsToUpload) {
    const auto device = GetParam().make();
    // Small, large and growing uploads, more than a device can have in flight.
    for (const std::size_t first : {1, 2000}) {
        std::vector<std::unique_ptr<Memory>> memories;
        std::vector<std::vector<float>> wanted;
        for (std::size_t i = 0; i < 40; ++i) {
            wanted.push_back(numbers(first + i / 2 * 50, static_cast<std::uint32_t>(71 + i)));
            memories.push_back(device->allocate(wanted.back().size() * sizeof(float)));
        }
        for (std::size_t i = 0; i < wanted.size(); ++i) {
            std::vector<float> values = wanted[i];
            device->enqueue_upload(memories[i]->data(), std::as_bytes(std::span(values)));
            std::fill(values.begin(), values.end(), -1.0F);
        }
        for (std::size_t i = 0; i < wanted.size(); ++i) {
            EXPECT_EQ(download(*device, memories[i]->data(), wanted[i].size()), wanted[i]) << i;
        }
    }
}

TEST_P(Storage, UploadsBetweenTheWorkBeforeAndTheWorkAfter) {
    const auto device = GetParam().make();
    for (const std::size_t count : {std::size_t{16}, std::size_t{20000}}) {
        const auto losses = device->allocate(count * sizeof(float));
        const auto memory = device->allocate(sizeof(StepScalars));
        auto* all = static_cast<StepScalars*>(memory->data());
        double want = 0;
        for (int i = 1; i <= 50; ++i) {
            const std::vector<float> values(count, static_cast<float>(i));
            device->enqueue_upload(losses->data(), std::as_bytes(std::span(values)));
            device->add_losses({static_cast<const float*>(losses->data()), count}, all);
            want += static_cast<double>(i) * static_cast<double>(count);
        }
        StepScalars got;
        device->download(std::as_writable_bytes(std::span(&got, 1)), all);
        EXPECT_EQ(got.loss_sum, want);
    }
}

TEST_P(Storage, HashIsThatOfEveryDevice) {
    const auto device = GetParam().make(), cpu = make_cpu_device({});
    const auto memory = device->allocate(70001 * sizeof(float));
    const auto* first = static_cast<const float*>(memory->data());
    for (const std::size_t count : {0, 1, 2, 5, 2048, 70001}) {
        const std::vector<float> values = numbers(count, 90);
        device->upload(memory->data(), std::as_bytes(std::span(values)));
        EXPECT_EQ(device->hash({first, count}), cpu->hash(values)) << count;
    }
    const std::vector<float> values = numbers(70001, 90);
    EXPECT_EQ(device->hash({first + 1, 1000}), cpu->hash(std::span(values).subspan(1, 1000)));
}

TEST_P(Storage, LoadsWhatWasStored) {
    const auto device = GetParam().make();
    naive::Random random(GetParam().compute, 8);
    for (const tensor::Shape& shape :
         {tensor::Shape{2, 3, 5, 3}, {2, 3, 5, 16}, {1, 2, 2, 40}, {3, 7}, {9}}) {
        const auto tensor = random.normal(shape);
        const std::vector<float> values(tensor.values.begin(), tensor.values.end());
        std::vector<float> back(values.size());
        const Buffer memory(*device, device->storage_bytes(shape, GetParam().compute));
        device->store_channels_last(memory.data(), shape, GetParam().compute, values);
        load_channels_last(*device, back, shape, GetParam().compute, memory.data());
        EXPECT_EQ(back, values);
        EXPECT_TRUE(memory.guard_is_intact());
    }
}

// load_channels_last() takes the layout from store_channels_last(), so a wrong order of elements
// would cancel out.
TEST_P(Storage, KeepsRowsAndVectorsInTheirOrder) {
    const auto device = GetParam().make();
    naive::Random random(GetParam().compute, 9);
    for (const tensor::Shape& shape : {tensor::Shape{3, 7}, {9}}) {
        const auto tensor = random.normal(shape);
        const std::vector<float> values(tensor.values.begin(), tensor.values.end());
        std::vector<std::byte> stored(device->storage_bytes(shape, GetParam().compute));
        const auto memory = device->allocate(stored.size());
        device->store_channels_last(memory->data(), shape, GetParam().compute, values);
        device->download(stored, memory->data());
        for (std::size_t i = 0; i < values.size(); ++i) {
            EXPECT_EQ(stored_number(stored, GetParam().compute, i), values[i]) << i;
        }
    }
}

TEST_P(Storage, RoundsToNearestEven) {
    const auto device = GetParam().make();
    const std::vector<float> values{1 + 0x1p-8f, 1 + 3 * 0x1p-8f, 1 + 0x1.8p-8f, -1 - 0x1p-9f};
    std::vector<float> back(4);
    const Buffer memory(*device, 16);
    device->store_channels_last(memory.data(), {4}, GetParam().compute, values);
    load_channels_last(*device, back, {4}, GetParam().compute, memory.data());
    for (std::size_t i = 0; i < 4; ++i) {
        EXPECT_EQ(back[i], naive::round_to(GetParam().compute, values[i]));
    }
}

TEST_P(Storage, RejectsAnotherNumberOfValues) {
    const auto device = GetParam().make();
    std::vector<float> values(7);
    const Buffer memory(*device, 64);
    EXPECT_THROW(device->store_channels_last(memory.data(), {8}, GetParam().compute, values),
                 Error);
    EXPECT_THROW(device->store_channels_last(memory.data(), {7}, tensor::DType::u8, values), Error);
    EXPECT_THROW(device->store_channels_last(memory.data(), {7, 1, 1}, GetParam().compute, values),
                 Error);
}

INSTANTIATE_TEST_SUITE_P(Devices, Storage, testing::ValuesIn(device_rows()),
                         [](const auto& test) { return to_string(test.param); });

}  // namespace
}  // namespace hpcai::device
