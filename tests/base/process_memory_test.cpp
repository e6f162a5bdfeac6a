// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include <gtest/gtest.h>

#include <hpcai/base/process_memory.hpp>

namespace hpcai {
namespace {

TEST(ProcessMemory, RemembersWhatWasTakenAndGivenBack) {
    constexpr std::size_t kBytes = std::size_t{192} << 20;
    const auto before = peak_resident_bytes();
    ASSERT_TRUE(before);
    EXPECT_GT(*before, 1 << 20) << "bytes, not kibibytes";
    std::vector<char>(kBytes, 1);  // written, so that it is resident
    const auto after = peak_resident_bytes();
    ASSERT_TRUE(after);
    EXPECT_GT(*after, static_cast<double>(kBytes));
    EXPECT_GE(*after, *before);
}

}  // namespace
}  // namespace hpcai
