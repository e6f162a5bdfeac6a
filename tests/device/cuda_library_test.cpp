// SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <hpcai/base/error.hpp>
#include <hpcai/device/cuda_library.hpp>

namespace hpcai::device {
namespace {

TEST(CudaLibrary, ReportsThatTheDriverIsMissing) {
    if (dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL) != nullptr) GTEST_SKIP() << "there is one";
    try {
        CudaLibrary::open();
        FAIL() << "it opened";
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ExitCode::usage);
        EXPECT_THAT(error.what(), testing::HasSubstr("no NVIDIA driver: libcuda.so.1"));
    }
}

}  // namespace
}  // namespace hpcai::device
