// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <limits>

#include <gtest/gtest.h>

#include <hpcai/base/rounding.hpp>

namespace {

using hpcai::align_up;
using hpcai::ceil_div;

TEST(Rounding, AQuotientIsRoundedUp) {
    EXPECT_EQ(ceil_div(0, 4), 0);
    EXPECT_EQ(ceil_div(1, 4), 1);
    EXPECT_EQ(ceil_div(4, 4), 1);
    EXPECT_EQ(ceil_div(std::int64_t{5}, 4), 2);
    constexpr auto kLargest = std::numeric_limits<std::uint32_t>::max();
    EXPECT_EQ(ceil_div(kLargest, 2), kLargest / 2 + 1) << "no intermediate sum overflows";
}

TEST(Rounding, AValueIsRaisedToTheNextMultiple) {
    EXPECT_EQ(align_up(std::size_t{0}, 64), 0U);
    EXPECT_EQ(align_up(std::size_t{1}, 64), 64U);
    EXPECT_EQ(align_up(std::size_t{64}, 64), 64U);
    EXPECT_EQ(align_up(7, 3), 9);
}

}  // namespace
