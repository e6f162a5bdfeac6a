// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <chrono>
#include <vector>

#include <gtest/gtest.h>

#include <hpcai/comm/statistics_span.hpp>

#include "world.hpp"

namespace hpcai::comm {
namespace {

using mpi_tests::world;

TEST(StatisticsSpan, SumsOverConsecutiveRanksOfTheGroup) {
    Communicator& everyone = world().everyone;
    for (int ranks = 2; ranks <= everyone.size(); ranks *= 2) {
        StatisticsSpan span(ranks);
        span.connect(everyone);
        EXPECT_EQ(span.ranks(), ranks);
        const int first = everyone.rank() / ranks * ranks;
        // Of few and of more bytes than are staged.
        for (const std::size_t count : {3U, 20000U}) {
            std::vector<double> values(count);
            for (std::size_t i = 0; i < count; ++i) {
                values[i] = everyone.rank() + static_cast<double>(i) / 8;
            }
            span.sum(values);
            const double of_ranks = ranks * (first + (ranks - 1) / 2.0);
            for (std::size_t i = 0; i < count; ++i) {
                ASSERT_EQ(values[i], of_ranks + ranks * static_cast<double>(i) / 8) << i;
            }
        }
        EXPECT_EQ(span.accounting().sums, 2);
        EXPECT_EQ(span.accounting().bytes, 20003 * 8);
        EXPECT_GT(span.accounting().seconds, 0);
    }
}

TEST(StatisticsSpan, RefusesGroupsThatItsRanksDoNotDivide) {
    StatisticsSpan span(world().everyone.size() + 1);
    EXPECT_THROW(span.connect(world().everyone), Error);
    std::array<double, 1> values{};
    EXPECT_THROW(span.sum(values), Error) << "not connected";
}

/// Every rank but `failing`, which announces a failure in the place of its sum, throws that failure
/// from a sum of its span or, where the span is whole, from the next call of the group; and soon.
void expect_failure_of(int failing) {
    const auto group = world().everyone.split(0, world().everyone.rank());
    StatisticsSpan span(2);
    span.connect(*group);
    std::array<double, 4> values{};
    const auto begin = std::chrono::steady_clock::now();
    try {
        if (group->rank() == failing) throw Error(ExitCode::data, "a photograph is cut");
        span.sum(values);
        group->barrier();
        FAIL() << "nobody was missed";
    } catch (const Error& error) {
        group->announce_failure(error);
        EXPECT_EQ(error.code(), ExitCode::data);
        EXPECT_STREQ(error.what(), "a photograph is cut");
    }
    EXPECT_THROW(span.sum(values), Error) << "a failed span must stay failed";
    const std::chrono::duration<double> waited = std::chrono::steady_clock::now() - begin;
    EXPECT_LT(waited.count(), 5) << "of a deadline of a minute or more";
}

TEST(StatisticsSpan, AFailureOfOneRankEndsTheSumsOfAll) {
    Communicator& everyone = world().everyone;
    if (everyone.size() % 2 != 0) GTEST_SKIP() << "needs pairs of ranks";
    for (int failing = 0; failing < everyone.size(); ++failing) {
        expect_failure_of(failing);
        everyone.barrier();
    }
}

}  // namespace
}  // namespace hpcai::comm
