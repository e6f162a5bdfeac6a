// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <hpcai/plan/group_map.hpp>

namespace hpcai::plan {
namespace {

TEST(GroupMap, DrawsOneLinePerGroupWithTheRanksOfEachNode) {
    const ParallelismController controller({12, 3, 4}, fill_nodes(12, 6));
    EXPECT_EQ(draw_group_map(controller, {.node_names = {"node001", "node002"}}),
              "3 groups x 4 ranks on 2 nodes\n"
              "group 0: node001[0-3]\n"
              "group 1: node001[4-5] node002[4-5]\n"
              "group 2: node002[0-3]\n");
}

TEST(GroupMap, NamesNodesByNumberWhenNamesAreAbsent) {
    const ParallelismController controller({2, 2, 1}, fill_nodes(2, 1));
    EXPECT_EQ(draw_group_map(controller, {}),
              "2 groups x 1 rank on 2 nodes\n"
              "group 0: node0[0]\n"
              "group 1: node1[0]\n");
}

TEST(GroupMap, MergesNeighbouringNodesOfAGroup) {
    const ParallelismController controller({64, 1, 64}, fill_nodes(64, 8));
    EXPECT_EQ(draw_group_map(controller, {}),
              "1 group x 64 ranks on 8 nodes\n"
              "group 0: node0..node7[0-7]\n");
}

TEST(GroupMap, MergesNeighbouringGroupsWhenThereAreMany) {
    const ParallelismController controller({100000, 12500, 8}, fill_nodes(100000, 8));
    EXPECT_EQ(draw_group_map(controller, {}),
              "12 500 groups x 8 ranks on 12 500 nodes\n"
              "groups 0-12499: 8 ranks each on 1 node, node0 .. node12499\n");
}

TEST(GroupMap, OmitsTheMiddleOfWhatStaysLong) {
    // Nodes of 6 ranks and groups of 4 ranks: one of two remainders follows each whole group.
    const ParallelismController controller({6000, 1500, 4}, fill_nodes(6000, 6));
    const std::string map = draw_group_map(controller, {.max_lines = 4});
    EXPECT_EQ(std::count(map.begin(), map.end(), '\n'), 1 + 4 + 1);
    EXPECT_NE(map.find("... "), std::string::npos);
    EXPECT_NE(map.find("group 0: "), std::string::npos);
    EXPECT_NE(map.find("1499: "), std::string::npos);
}

TEST(GroupMap, StaysOnOneLineForAGroupSpreadIrregularly) {
    std::vector<int> node_of_world_rank;
    for (int node = 0; node < 100; ++node) {
        node_of_world_rank.insert(node_of_world_rank.end(), node % 2 == 0 ? 1u : 2u, node);
    }
    const ParallelismController controller({150, 1, 150}, node_of_world_rank);
    const std::string line = describe_group(controller, 0, {});
    EXPECT_LT(line.size(), 120u);
    EXPECT_NE(line.find(" and 92 more"), std::string::npos);
}

TEST(GroupMap, EscapesHostileNodeNames) {
    const ParallelismController controller({1, 1, 1}, {0});
    EXPECT_EQ(describe_group(controller, 0, {"bad\nname"}), "bad\\nname[0]");
}

}  // namespace
}  // namespace hpcai::plan
