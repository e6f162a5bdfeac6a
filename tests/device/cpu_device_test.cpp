// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "device/kernel_runner.hpp"

namespace hpcai::device {
namespace {

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

TEST(CpuDevice, RejectsAPrecisionItCannotComputeIn) {
    const auto device = make_cpu_device({});
    const ops::Convolution op{.input = {2, 4, 4, 16}, .filters = 16};
    EXPECT_THROW(device->build(op, {.compute = tensor::DType::f16}), Error);
}

}  // namespace
}  // namespace hpcai::device
