// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <future>
#include <memory>

#include <gtest/gtest.h>

#include <hpcai/meters/sampler.hpp>

namespace hpcai::meters {
namespace {

constexpr double kForEver = 3600;

TEST(Repeater, BeginsBeforeItRepeatsAndEndsAfterThat) {
    std::atomic<int> begun = 0, repeated = 0, ended = 0;
    std::promise<void> third;
    Repeater repeater({.begin = [&] { begun += repeated == 0 ? 1 : 100; },
                       .repeat =
                           [&] {
                               if (++repeated == 3) third.set_value();
                           },
                       .end = [&] { ended += repeated; },
                       .interval_seconds = 1e-4});
    third.get_future().wait();
    EXPECT_TRUE(repeater.stop_within(kForEver));
    const int after = repeated;
    EXPECT_GE(after, 3);
    EXPECT_EQ(begun, 1);
    EXPECT_EQ(ended, after);
    EXPECT_TRUE(repeater.stop_within(kForEver));
    EXPECT_EQ(repeated, after);
    EXPECT_EQ(ended, after);
}

TEST(Repeater, HasBegunWhenItIsStoppedAtOnce) {
    int begun = 0, repeated = 0;
    Repeater repeater(
        {.begin = [&] { ++begun; }, .repeat = [&] { ++repeated; }, .interval_seconds = 3600});
    EXPECT_TRUE(repeater.stop_within(kForEver));
    EXPECT_EQ(begun, 1);
    EXPECT_EQ(repeated, 0);
}

TEST(Repeater, DetachesAThreadThatHangs) {
    const auto answer = std::make_shared<std::promise<void>>();
    const auto called = std::make_shared<std::promise<void>>();
    const auto end = std::make_shared<std::promise<void>>();
    std::future<void> ended = end->get_future();
    {
        Repeater repeater({.begin =
                               [answer, called] {
                                   called->set_value();
                                   answer->get_future().wait();
                               },
                           .repeat = [] {},
                           .end = [end] { end->set_value(); }});
        called->get_future().wait();
        EXPECT_FALSE(repeater.stop_within(0.01));
        EXPECT_FALSE(repeater.stop_within(kForEver)) << "there is no second wait";
    }
    answer->set_value();
    ended.wait();  // the thread outlives the object
}

}  // namespace
}  // namespace hpcai::meters
