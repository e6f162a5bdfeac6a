// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <hpcai/base/error.hpp>
#include <hpcai/base/median.hpp>

namespace {

using hpcai::median;

TEST(Median, OfAnOddNumberOfValuesIsTheMiddleOne) {
    EXPECT_EQ(median({5}), 5);
    EXPECT_EQ(median({9, 1, 4}), 4);
}

TEST(Median, OfAnEvenNumberOfValuesIsTheMeanOfTheMiddleTwo) {
    EXPECT_EQ(median({1, 2}), 1.5);
    EXPECT_EQ(median({8, 1, 4, 2}), 3);
}

TEST(Median, OfNoValuesIsAnError) {
    EXPECT_THROW(median({}), hpcai::Error);
}

}  // namespace
