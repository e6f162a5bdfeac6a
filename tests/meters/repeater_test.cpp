// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <future>

#include <gtest/gtest.h>

#include <hpcai/meters/repeater.hpp>

namespace hpcai::meters {
namespace {

TEST(Repeater, BeginsBeforeItRepeatsAndRepeatsUntilItIsStopped) {
    std::atomic<int> begun = 0, repeated = 0;
    std::promise<void> third;
    Repeater repeater({.begin = [&] { begun += repeated == 0 ? 1 : 100; },
                       .again =
                           [&] {
                               if (++repeated == 3) third.set_value();
                           },
                       .seconds_between = 1e-4});
    third.get_future().wait();
    repeater.stop();
    const int after = repeated;
    EXPECT_GE(after, 3);
    EXPECT_EQ(begun, 1);
    repeater.stop();
    EXPECT_EQ(repeated, after);
}

TEST(Repeater, HasBegunWhenItIsStoppedAtOnce) {
    int begun = 0, repeated = 0;
    Repeater repeater(
        {.begin = [&] { ++begun; }, .again = [&] { ++repeated; }, .seconds_between = 3600});
    repeater.stop();
    EXPECT_EQ(begun, 1);
    EXPECT_EQ(repeated, 0);
}

}  // namespace
}  // namespace hpcai::meters
