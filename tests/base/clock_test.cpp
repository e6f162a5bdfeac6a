// SPDX-License-Identifier: Apache-2.0
#include <regex>

#include <gtest/gtest.h>

#include <hpcai/base/clock.hpp>

namespace hpcai {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using std::chrono::system_clock;

TEST(Stopwatch, NeverRunsBackAndStartsAgain) {
    Stopwatch watch;
    const double first = watch.seconds();
    const double second = watch.seconds();
    EXPECT_GE(first, 0);
    EXPECT_GE(second, first);
    EXPECT_GE(watch.restart(), second);
    EXPECT_LT(watch.seconds(), 60);
}

TEST(UtcTime, IsIso8601InWholeSeconds) {
    EXPECT_EQ(utc_iso8601(system_clock::time_point{}), "1970-01-01T00:00:00Z");
    const auto when = system_clock::time_point{seconds(1667656989) + milliseconds(999)};
    EXPECT_EQ(utc_iso8601(when), "2022-11-05T14:03:09Z");
}

TEST(UtcTime, RoundsDownBeforeTheEpochToo) {
    const auto when = system_clock::time_point{milliseconds(-1)};
    EXPECT_EQ(utc_iso8601(when), "1969-12-31T23:59:59Z");
}

TEST(UtcTime, OfThePresentHasTheSameForms) {
    EXPECT_TRUE(std::regex_match(utc_now(), std::regex(R"(20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ)")));
    EXPECT_TRUE(std::regex_match(utc_now_compact(), std::regex(R"(20\d{6}T\d{6}Z)")));
}

}  // namespace
}  // namespace hpcai
