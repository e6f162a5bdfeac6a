// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>

#include <gtest/gtest.h>

#include <hpcai/launch/environment.hpp>

namespace hpcai::launch {
namespace {

TEST(PreloadedLibraries, AreThoseOfTheEnvironmentAndOfTheSystem) {
    const char* variable = std::getenv("LD_PRELOAD");
    const std::string before = variable == nullptr ? "" : variable;
    setenv("LD_PRELOAD", "libfaketime.so.1", 1);
    EXPECT_TRUE(preloaded_libraries().starts_with("libfaketime.so.1"));
    unsetenv("LD_PRELOAD");
    EXPECT_EQ(preloaded_libraries().find("libfaketime"), std::string::npos);
    if (!before.empty()) setenv("LD_PRELOAD", before.c_str(), 1);
}

}  // namespace
}  // namespace hpcai::launch
