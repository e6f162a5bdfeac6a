// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include <gtest/gtest.h>

#include <hpcai/comm/all_reduce_traffic.hpp>
#include <hpcai/comm/sync_batch_norm_group.hpp>

namespace hpcai::comm {
namespace {

AllReduceTraffic traffic_of(const AllReduceOptions& options, std::size_t values) {
    const PlannedAllReduce sum{options, values, {}};
    return estimate_traffic(std::span(&sum, 1));
}

TEST(AllReduceTraffic, OfAHierarchyIsTheFormulasByHand) {
    // Two nodes of two ranks: a rank sends half of 8000 bytes to its neighbour and half of that to
    // the other node. Then the sums are sent back.
    const AllReduceOptions options{
        AllReduceAlgorithm::hierarchical, WireFormat::fp32, {}, {0, 0, 1, 1}};
    const AllReduceTraffic traffic = traffic_of(options, 2048);
    EXPECT_EQ(traffic.sent, 2 * 4096 + 2 * 2048);
    EXPECT_EQ(traffic.between_nodes, 2 * 2048);
    EXPECT_EQ(traffic.out_of_node, 2 * 2 * 2048);
}

TEST(AllReduceTraffic, OfAllReduceIsTheFormulaByHand) {
    const AllReduceOptions options{
        AllReduceAlgorithm::all_reduce, WireFormat::fp32, {}, {0, 0, 1, 1}};
    const AllReduceTraffic traffic = traffic_of(options, 1000);
    EXPECT_EQ(traffic.sent, 6000);
    EXPECT_EQ(traffic.between_nodes, 4000);
    EXPECT_EQ(traffic.out_of_node, 8000);
}

TEST(AllReduceTraffic, IncludesStatisticsThatAreSummedOverSomeRanks) {
    // Spans of six ranks on nodes of three: one message to the neighbour and then two to every
    // second rank, one or two of which are on the other node.
    const std::vector<int> nodes{0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3};
    const std::vector<SentBytes> statistics = sync_batch_norm_traffic(6, nodes, 100);
    const std::vector<std::int64_t> messages_to_other_nodes{1, 2, 2, 2, 2, 1};
    ASSERT_EQ(statistics.size(), 12U);
    for (std::size_t rank = 0; rank < 12; ++rank) {
        EXPECT_EQ(statistics[rank].total, 300) << rank;
        EXPECT_EQ(statistics[rank].to_other_nodes, 100 * messages_to_other_nodes[rank % 6]) << rank;
    }
    const AllReduceOptions options{AllReduceAlgorithm::all_reduce, WireFormat::fp32, {}, nodes};
    const AllReduceTraffic alone = traffic_of(options, 1200);
    const PlannedAllReduce sum{options, 1200, statistics};
    const AllReduceTraffic traffic = estimate_traffic(std::span(&sum, 1));
    EXPECT_EQ(traffic.sent, alone.sent + 300);
    EXPECT_EQ(traffic.between_nodes, alone.between_nodes + 200);
    EXPECT_EQ(traffic.out_of_node, alone.out_of_node + 500);
}

TEST(AllReduceTraffic, AddsUpTheBytesOfANodesRanksInDifferentAllReduces) {
    const AllReduceOptions apart{AllReduceAlgorithm::all_reduce, WireFormat::fp32, {}, {0, 1}};
    const AllReduceOptions together{AllReduceAlgorithm::all_reduce, WireFormat::fp32, {}, {1, 1}};
    const AllReduceTraffic one = traffic_of(apart, 1000);
    const std::vector<PlannedAllReduce> sums{
        {apart, 1000, {}}, {together, 3000, {}}, {apart, 500, {}}};
    const AllReduceTraffic all = estimate_traffic(sums);
    EXPECT_EQ(all.sent, 3 * one.sent);
    EXPECT_EQ(all.between_nodes, one.between_nodes);
    EXPECT_EQ(all.out_of_node, one.out_of_node * 3 / 2);
}

TEST(AllReduceTraffic, OfManyRanksIsComputedQuickly) {
    std::vector<int> nodes(100'000);
    for (std::size_t rank = 0; rank < nodes.size(); ++rank)
        nodes[rank] = static_cast<int>(rank / 8);
    const std::vector<SentBytes> statistics = sync_batch_norm_traffic(100'000, nodes, 1000);
    for (const AllReduceAlgorithm algorithm :
         {AllReduceAlgorithm::all_reduce, AllReduceAlgorithm::torus_2d,
          AllReduceAlgorithm::hierarchical}) {
        const AllReduceOptions options{algorithm, WireFormat::fp16, {}, nodes};
        const PlannedAllReduce sum{options, 25'000'000, statistics};
        const AllReduceTraffic traffic = estimate_traffic(std::span(&sum, 1));
        EXPECT_GT(traffic.sent, 0);
        EXPECT_LE(traffic.between_nodes, traffic.sent);
    }
}

}  // namespace
}  // namespace hpcai::comm
