// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <functional>

#include <gtest/gtest.h>

#include <hpcai/base/error.hpp>
#include <hpcai/base/median_interval.hpp>
#include <hpcai/base/philox.hpp>

namespace hpcai {
namespace {

TEST(MedianRanks, AreThoseOfTheBinomialTable) {
    using Ranks = std::pair<int, int>;
    for (const auto& [count, ranks] : std::vector<std::pair<int, Ranks>>{{6, {1, 6}},
                                                                         {10, {2, 9}},
                                                                         {15, {4, 12}},
                                                                         {20, {6, 15}},
                                                                         {30, {10, 21}},
                                                                         {50, {18, 33}},
                                                                         {100, {40, 61}}}) {
        EXPECT_EQ(median_positions(count), ranks) << count;
    }
}

TEST(MedianRanks, AreAbsentForFewerThanSixValues) {
    for (int count = 0; count < 6; ++count) EXPECT_FALSE(median_positions(count)) << count;
}

TEST(MedianRanks, EncloseTheMedianOfTheMostValues) {
    EXPECT_EQ(median_positions(1000), std::pair(469, 532));
    EXPECT_THROW(median_positions(1001), Error);
}

TEST(MedianInterval, HasTheMedianAndTheOrderStatisticsInAnyOrder) {
    const MedianInterval interval = median_interval({5, 1, 6, 2, 4, 3});
    EXPECT_EQ(interval.median, 3.5);
    EXPECT_EQ(interval.bounds, std::pair(1.0, 6.0));
    EXPECT_FALSE(median_interval({1, 2, 3, 4, 5}).bounds);
}

TEST(MedianInterval, EnclosesTheMedianOfADistributionAsOftenAsItsRanksImply) {
    struct Distribution {
        const char* name;
        std::function<double(CounterStream&)> draw;
        double median;
    };
    const std::vector<Distribution> distributions{
        {"normal", [](CounterStream& random) { return random.normal(); }, 0},
        {"uniform", [](CounterStream& random) { return random.uniform(); }, 0.5},
        {"exponential", [](CounterStream& random) { return -std::log(1 - random.uniform()); },
         std::log(2.0)},
        {"lognormal", [](CounterStream& random) { return std::exp(2 * random.normal()); }, 1}};
    for (std::uint32_t index = 0; index < 4; ++index) {
        const Distribution& one = distributions[index];
        CounterStream random(2026, RandomPurpose::test, index);
        int enclosed = 0;
        for (int draw = 0; draw < 1000; ++draw) {
            std::vector<double> values;
            for (int i = 0; i < 30; ++i) values.push_back(one.draw(random));
            const auto [low, high] = *median_interval(values).bounds;
            enclosed += low <= one.median && one.median <= high;
        }
        EXPECT_GE(enclosed, 940) << one.name;
        EXPECT_LE(enclosed, 980) << one.name;
    }
}

}  // namespace
}  // namespace hpcai
