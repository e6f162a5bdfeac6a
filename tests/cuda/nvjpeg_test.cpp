// SPDX-License-Identifier: Apache-2.0
#include "device/cuda/nvjpeg.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <hpcai/base/error.hpp>

namespace hpcai::device::cuda::nvjpeg {
namespace {

/// The library works without a GPU up to the creation of a handle.
TEST(Nvjpeg, HasItsFunctionsOrIsNamedAsMissing) {
    Functions functions{};
    try {
        functions = open();
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ExitCode::usage);
        EXPECT_THAT(error.what(), testing::StartsWith("libnvjpeg.so.13: "));
        GTEST_SKIP() << error.what();
    }
    int version = 0;
    EXPECT_EQ(functions.get_property(MAJOR_VERSION, &version), kSuccess);
    EXPECT_GE(version, 12);
    EXPECT_NE(functions.decode_batch, nullptr);
}

}  // namespace
}  // namespace hpcai::device::cuda::nvjpeg
