// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstring>
#include <numeric>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <hpcai/base/error.hpp>
#include <hpcai/base/philox.hpp>
#include <hpcai/comm/all_reduce_schedule.hpp>
#include <hpcai/comm/all_reduce_traffic.hpp>

#include "support/lockstep_sum.hpp"

namespace hpcai::comm {
namespace {

using tests::LockstepSum;

/// Returns the node of each rank, if ranks fill one node after the other.
std::vector<int> nodes_of(const std::vector<int>& ranks_of_node) {
    std::vector<int> nodes;
    for (std::size_t node = 0; node < ranks_of_node.size(); ++node) {
        nodes.insert(nodes.end(), static_cast<std::size_t>(ranks_of_node[node]),
                     static_cast<int>(node));
    }
    return nodes;
}

std::vector<int> one_node(int ranks) {
    return nodes_of({ranks});
}

struct Case {
    std::string name;
    AllReduceOptions options;
};

/// Every algorithm for many numbers of ranks: primes, squares, grids that are not square, nodes
/// with equal and unequal numbers of ranks, and ranks that alternate between nodes.
std::vector<Case> cases() {
    std::vector<Case> all;
    for (const int ranks : {1, 2, 3, 4, 6, 7, 8, 12, 13, 30}) {
        all.push_back({"all_reduce_" + std::to_string(ranks),
                       {AllReduceAlgorithm::all_reduce, WireFormat::fp32, {}, one_node(ranks)}});
        all.push_back({"torus_" + std::to_string(ranks),
                       {AllReduceAlgorithm::torus_2d, WireFormat::fp32, {}, one_node(ranks)}});
    }
    for (const int columns : {1, 2, 3, 4, 6, 12}) {
        all.push_back({"torus_12_by_" + std::to_string(columns),
                       {AllReduceAlgorithm::torus_2d, WireFormat::fp32, columns, one_node(12)}});
    }
    for (const auto& nodes :
         std::vector<std::vector<int>>{{2, 2, 2, 2}, {3, 3, 3, 3}, {4, 4}, {1, 3}}) {
        std::string name;
        for (const int ranks : nodes) name.append("_").append(std::to_string(ranks));
        all.push_back({"all_reduce_over" + name,
                       {AllReduceAlgorithm::all_reduce, WireFormat::fp32, {}, nodes_of(nodes)}});
        all.push_back({"torus_over" + name,
                       {AllReduceAlgorithm::torus_2d, WireFormat::fp32, {}, nodes_of(nodes)}});
        all.push_back({"torus_of_two_columns_over" + name,
                       {AllReduceAlgorithm::torus_2d, WireFormat::fp32, 2, nodes_of(nodes)}});
        all.push_back(
            {"hierarchical_of_pretended_nodes_over" + name,
             {AllReduceAlgorithm::hierarchical, WireFormat::fp32, {}, nodes_of(nodes), 3}});
    }
    for (const auto& nodes : std::vector<std::vector<int>>{
             {1}, {5}, {1, 1}, {2, 2}, {4, 4}, {3, 3, 3}, {1, 3}, {3, 1}, {2, 3, 4}, {1, 1, 6}}) {
        std::string name = "hierarchical";
        for (const int ranks : nodes) name.append("_").append(std::to_string(ranks));
        all.push_back(
            {name, {AllReduceAlgorithm::hierarchical, WireFormat::fp32, {}, nodes_of(nodes)}});
    }
    all.push_back(
        {"hierarchical_in_turns",
         {AllReduceAlgorithm::hierarchical, WireFormat::fp32, {}, {0, 1, 0, 1, 0, 7, 7}}});
    return all;
}

class AllReduceSchedules : public testing::TestWithParam<Case> {
protected:
    std::size_t ranks() const { return GetParam().options.node_of_rank.size(); }
    AllReduceOptions options(WireFormat format) const {
        AllReduceOptions options = GetParam().options;
        options.format = format;
        return options;
    }
    /// Gradients of many magnitudes, so that their sum depends on the order of the terms.
    std::vector<std::vector<float>> gradients(std::size_t count) const {
        std::vector<std::vector<float>> all(ranks());
        for (std::size_t rank = 0; rank < ranks(); ++rank) {
            CounterStream random(23, RandomPurpose::test, static_cast<std::uint32_t>(rank),
                                 static_cast<std::uint32_t>(count), 0);
            for (std::size_t i = 0; i < count; ++i) {
                all[rank].push_back(
                    static_cast<float>(random.normal() * std::exp(4 * random.uniform())));
            }
        }
        return all;
    }
};

INSTANTIATE_TEST_SUITE_P(, AllReduceSchedules, testing::ValuesIn(cases()),
                         [](const auto& one) { return one.param.name; });

/// Returns the error of one rounding in a format, relative to the largest magnitude.
double rounding(WireFormat format) {
    switch (format) {
        case WireFormat::fp32:
            return 0x1p-24;
        case WireFormat::bf16:
            return 0x1p-9;
        case WireFormat::fp16:
            return 0x1p-11;
        case WireFormat::int8:
            return 0.5 / 127;
    }
    return 0;
}

TEST_P(AllReduceSchedules, GiveTheSumOfAllRanksUpToTheFormatsRounding) {
    for (const WireFormat format :
         {WireFormat::fp32, WireFormat::bf16, WireFormat::fp16, WireFormat::int8}) {
        for (const std::size_t count : {0, 1, 255, 256, 257, 700, 5000}) {
            const auto mine = gradients(count);
            LockstepSum sum(options(format), count);
            const auto got = sum.run(mine);
            double magnitude = 0;  // of all terms: an upper bound of every partial sum
            for (const auto& values : mine) {
                double largest = 0;
                for (const float value : values)
                    largest = std::max(largest, std::abs(double{value}));
                magnitude += largest;
            }
            // Each term, each partial sum and the sum are rounded once, and fp32 rounds at each
            // addition.
            const double roundings =
                format == WireFormat::fp32 ? static_cast<double>(ranks()) : 3.5;
            for (std::size_t i = 0; i < count; ++i) {
                double want = 0;
                for (const auto& values : mine) want += values[i];
                ASSERT_NEAR(got[0][i], want, roundings * rounding(format) * magnitude)
                    << name_of(format) << ", value " << i << " of " << count;
            }
        }
    }
}

TEST_P(AllReduceSchedules, EndWithTheSameBitsOnAllRanks) {
    for (const WireFormat format :
         {WireFormat::fp32, WireFormat::bf16, WireFormat::fp16, WireFormat::int8}) {
        LockstepSum sum(options(format), 3000);
        for (int step = 0; step < 3; ++step) {  // residuals differ between ranks
            const auto got = sum.run(gradients(3000));
            for (std::size_t rank = 1; rank < got.size(); ++rank) {
                ASSERT_EQ(0, std::memcmp(got[rank].data(), got[0].data(), 3000 * sizeof(float)))
                    << name_of(format) << ", rank " << rank << " in step " << step;
            }
        }
    }
}

TEST_P(AllReduceSchedules, GiveInfinityWhereOneRankGivesIt) {
    for (const WireFormat format :
         {WireFormat::fp32, WireFormat::bf16, WireFormat::fp16, WireFormat::int8}) {
        for (std::size_t rank = 0; rank < ranks(); ++rank) {
            auto mine = gradients(1000);
            for (auto& values : mine) values.back() = 0;
            mine[rank].back() = INFINITY;
            LockstepSum sum(options(format), 1000);
            EXPECT_EQ(sum.run(mine)[0].back(), INFINITY) << name_of(format);
            mine[rank].back() = 0;
            const auto next = sum.run(mine);
            EXPECT_EQ(next[0].back(), 0) << name_of(format) << " remembers the failure";
        }
    }
}

/// Compares the mean of 60 int8 sums with the exact sum. The loss scale doubles after each of
/// `doublings` equal spans. The mean may lack one step's rounding error, and half of that at each
/// doubling, because the residual then counts half.
void expect_mean_near_sum(const AllReduceOptions& options,
                          const std::vector<std::vector<float>>& gradients, int doublings) {
    constexpr int kSteps = 60;
    const std::size_t count = gradients.front().size();
    LockstepSum sum(options, count);
    std::vector<double> total(count);
    for (int step = 0; step < kSteps; ++step) {
        const double scale = std::exp2(step * (doublings + 1) / kSteps);
        auto scaled = gradients;
        for (auto& values : scaled) {
            for (float& value : values) value *= static_cast<float>(scale);
        }
        const auto got = sum.run(scaled);
        for (std::size_t i = 0; i < count; ++i) total[i] += got[0][i] / scale;
    }
    double magnitude = 0;
    for (const auto& values : gradients) {
        for (const float value : values) magnitude = std::max(magnitude, std::abs(double{value}));
    }
    const double of_one_step =
        4 * rounding(WireFormat::int8) * magnitude * static_cast<double>(gradients.size());
    for (std::size_t i = 0; i < count; ++i) {
        double want = 0;
        for (const auto& values : gradients) want += values[i];
        ASSERT_NEAR(total[i] / kSteps, want, (1 + doublings / 2.0) * of_one_step / kSteps) << i;
    }
}

TEST_P(AllReduceSchedules, ErrorFeedbackBringsTheMeanOverStepsToTheSum) {
    expect_mean_near_sum(options(WireFormat::int8), gradients(600), 0);
}

TEST_P(AllReduceSchedules, ErrorFeedbackLosesLittleWhereTheLossScaleDoubles) {
    expect_mean_near_sum(options(WireFormat::int8), gradients(600), 2);
}

/// The estimate is exact if the parts of ranks are whole blocks, whose scales are a multiple of the
/// alignment.
TEST_P(AllReduceSchedules, SendTheBytesOfTheFormula) {
    for (const WireFormat format : {WireFormat::fp32, WireFormat::fp16, WireFormat::int8}) {
        const AllReduceOptions options = this->options(format);
        const std::size_t count = 4 * kWireBlock * std::lcm(ranks(), std::size_t{24});
        const AllReduceTraffic got = LockstepSum(options, count).traffic();
        const PlannedAllReduce sum{options, count, {}};
        const AllReduceTraffic want = estimate_traffic(std::span(&sum, 1));
        EXPECT_EQ(got.sent, want.sent);
        EXPECT_EQ(got.between_nodes, want.between_nodes);
        EXPECT_EQ(got.out_of_node, want.out_of_node);
    }
}

TEST(TorusColumns, AreThoseOfTheGridNearestToASquare) {
    const auto columns = [](int ranks) { return columns_of_torus(std::nullopt, ranks); };
    EXPECT_EQ(columns(1), 1);
    EXPECT_EQ(columns(4), 2);
    EXPECT_EQ(columns(6), 3);
    EXPECT_EQ(columns(7), 7);
    EXPECT_EQ(columns(8), 4);
    EXPECT_EQ(columns(12), 4);
    EXPECT_EQ(columns(36), 6);
    EXPECT_EQ(columns(65521), 65521);
    EXPECT_EQ(columns(100042), 50021);
}

TEST(TorusColumns, ThatDoNotDivideTheRanksAreRejectedByTheirKey) {
    for (const int columns : {0, -1, 3, 5, 16}) {
        try {
            columns_of_torus(columns, 8);
            ADD_FAILURE() << columns;
        } catch (const Error& error) {
            EXPECT_EQ(error.code(), ExitCode::usage);
            EXPECT_THAT(error.what(), testing::HasSubstr("communication.torus_columns"));
            EXPECT_THAT(error.what(), testing::HasSubstr(std::to_string(columns)));
        }
    }
    EXPECT_EQ(columns_of_torus(8, 8), 8);
    EXPECT_EQ(columns_of_torus(1, 8), 1);
}

}  // namespace
}  // namespace hpcai::comm
