// SPDX-License-Identifier: Apache-2.0
#include <bit>
#include <cmath>

#include <gtest/gtest.h>

#include <hpcai/device/cpu_device.hpp>

#include "kernels/buffer.hpp"
#include "kernels/elementwise.hpp"

namespace hpcai::kernels {
namespace reference {

inline void hash(const float* values, std::int64_t count, std::uint64_t* sum, Stream) {
    *sum = static_cast<std::uint64_t>(count);
    for (std::int64_t i = 0; 2 * i < count; ++i) {
        std::uint64_t z = std::bit_cast<std::uint32_t>(values[2 * i]);
        if (2 * i + 1 < count) {
            z += std::uint64_t{std::bit_cast<std::uint32_t>(values[2 * i + 1])} * 0x100000000;
        }
        z += static_cast<std::uint64_t>(i + 1) * 0x9e3779b97f4a7c15;
        z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
        z = (z ^ z >> 27) * 0x94d049bb133111eb;
        *sum += z ^ z >> 31;
    }
}

}  // namespace reference

namespace {

std::uint64_t hash_of(const float* values, std::int64_t count) {
    std::uint64_t sum = 12345;  // is overwritten
    hash(values, count, &sum, nullptr);
    return sum;
}

TEST(HashKernel, IsTheHashOfTheCpuDeviceAtEveryPlace) {
    Contents contents(11);
    constexpr std::int64_t kMaxCount =
        1056 * 256 * 4 + 1027;  // more than the grid processes at once
    Buffer values = contents.normal(DType::f32, kMaxCount + 4);
    values.set(3, NAN);
    values.set(4, -0.0);
    const auto device = device::make_cpu_device({});
    for (const std::int64_t first : {0, 1, 2, 3}) {
        const float* from = values.as<float>() + first;
        for (const std::int64_t count :
             std::vector<std::int64_t>{0, 1, 2, 3, 4, 5, 7, 1001, kMaxCount}) {
            std::uint64_t twin = 0;
            reference::hash(from, count, &twin, nullptr);
            EXPECT_EQ(hash_of(from, count), twin) << first << " " << count;
            EXPECT_EQ(twin, device->hash({from, static_cast<std::size_t>(count)}));
        }
    }
}

TEST(HashKernel, SeesOneFlippedBitAndTwoExchangedValues) {
    Contents contents(12);
    Buffer values = contents.normal(DType::f32, 1001);
    const auto before = hash_of(values.as<float>(), 1001);
    for (const int at : {0, 500, 1000}) {
        values.as<std::uint32_t>()[at] ^= 1;
        EXPECT_NE(hash_of(values.as<float>(), 1001), before);
        values.as<std::uint32_t>()[at] ^= 1;
    }
    std::swap(values.as<float>()[6], values.as<float>()[906]);
    EXPECT_NE(hash_of(values.as<float>(), 1001), before);
}

}  // namespace
}  // namespace hpcai::kernels
