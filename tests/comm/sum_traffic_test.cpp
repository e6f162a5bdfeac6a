// SPDX-License-Identifier: Apache-2.0
#include "hpcai/comm/sum_traffic.hpp"

#include <vector>

#include <gtest/gtest.h>

namespace hpcai::comm {
namespace {

TEST(SumTraffic, OfAHierarchyIsTheFormulasByHand) {
    // Two nodes of two: half of 8000 bytes to the neighbour, half of that to the other node, and
    // both ways back.
    const SumOptions options{SumAlgorithm::hierarchical, WireFormat::fp32, {}, {0, 0, 1, 1}};
    const SumTraffic traffic = estimate_traffic(options, 2048);
    EXPECT_EQ(traffic.sent, 2 * 4096 + 2 * 2048);
    EXPECT_EQ(traffic.between_nodes, 2 * 2048);
    EXPECT_EQ(traffic.out_of_node, 2 * 2 * 2048);
}

TEST(SumTraffic, OfAllWithAllIsTheFormulaByHand) {
    const SumOptions options{SumAlgorithm::all_reduce, WireFormat::fp32, {}, {0, 0, 1, 1}};
    const SumTraffic traffic = estimate_traffic(options, 1000);
    EXPECT_EQ(traffic.sent, 6000);
    EXPECT_EQ(traffic.between_nodes, 4000);
    EXPECT_EQ(traffic.out_of_node, 8000);
}

TEST(SumTraffic, OfManyRanksIsKnownAtOnce) {
    std::vector<int> nodes(100'000);
    for (std::size_t rank = 0; rank < nodes.size(); ++rank)
        nodes[rank] = static_cast<int>(rank / 8);
    for (const SumAlgorithm algorithm :
         {SumAlgorithm::all_reduce, SumAlgorithm::torus_2d, SumAlgorithm::hierarchical}) {
        const SumTraffic traffic =
            estimate_traffic({algorithm, WireFormat::fp16, {}, nodes}, 25'000'000);
        EXPECT_GT(traffic.sent, 0);
        EXPECT_LE(traffic.between_nodes, traffic.sent);
    }
}

}  // namespace
}  // namespace hpcai::comm
