// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <chrono>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <hpcai/base/error.hpp>
#include <hpcai/base/philox.hpp>
#include <hpcai/plan/parallelism_controller.hpp>

namespace hpcai::plan {
namespace {

std::vector<int> nodes_of_sizes(const std::vector<int>& sizes) {
    std::vector<int> nodes;
    for (std::size_t node = 0; node < sizes.size(); ++node) {
        nodes.insert(nodes.end(), static_cast<std::size_t>(sizes[node]), static_cast<int>(node));
    }
    return nodes;
}

std::vector<int> shuffled(std::vector<int> values, std::uint64_t seed) {
    CounterStream stream(seed, RandomPurpose::test);
    for (std::size_t i = values.size(); i > 1; --i) {
        std::swap(values[i - 1], values[stream.below(static_cast<std::uint32_t>(i))]);
    }
    return values;
}

/// Expects that every rank has one place, and that all look-ups agree.
void expect_consistent(const ParallelismController& controller, const std::vector<int>& nodes) {
    const Layout& layout = controller.layout();
    std::set<std::pair<int, int>> in_groups, on_nodes;
    for (int world_rank = 0; world_rank < layout.ranks; ++world_rank) {
        const RankPlace place = controller.place(world_rank);
        EXPECT_EQ(place.world_rank, world_rank);
        EXPECT_EQ(place.node, nodes[static_cast<std::size_t>(world_rank)]);
        EXPECT_EQ(controller.world_rank_of(place.group, place.group_rank), world_rank);
        in_groups.insert({place.group, place.group_rank});
        on_nodes.insert({place.node, place.node_rank});
    }
    EXPECT_EQ(in_groups.size(), static_cast<std::size_t>(layout.ranks));
    EXPECT_EQ(on_nodes.size(), static_cast<std::size_t>(layout.ranks));
}

TEST(ParallelismController, PlacesTheWorkedExampleOfItsHeader) {
    const std::vector<int> nodes = {0, 1, 0, 1, 0, 1, 0, 1};
    const ParallelismController controller({8, 2, 4}, nodes);
    expect_consistent(controller, nodes);
    EXPECT_EQ(controller.place(4), (RankPlace{4, 0, 2, 0, 2}));
    EXPECT_EQ(controller.place(5), (RankPlace{5, 1, 2, 1, 2}));
    EXPECT_EQ(controller.leader(0), 0);
    EXPECT_EQ(controller.leader(1), 1);
    EXPECT_EQ(controller.shares_of(0), (std::vector<NodeShare>{{0, 4}}));
    EXPECT_EQ(controller.shares_of(1), (std::vector<NodeShare>{{1, 4}}));
}

TEST(ParallelismController, FillsOneNodeWithSeveralGroupsInOrder) {
    const std::vector<int> nodes = fill_nodes(8, 8);
    const ParallelismController controller({8, 4, 2}, nodes);
    for (int rank = 0; rank < 8; ++rank) {
        EXPECT_EQ(controller.place(rank), (RankPlace{rank, rank / 2, rank % 2, 0, rank}));
    }
}

TEST(ParallelismController, SpansOnlyAsManyNodesAsNeededHoweverRanksAreNumbered) {
    // 8 nodes of 4 ranks, 4 groups of 8: two nodes each.
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
        const std::vector<int> nodes = shuffled(fill_nodes(32, 4), seed);
        const ParallelismController controller({32, 4, 8}, nodes);
        expect_consistent(controller, nodes);
        for (int group = 0; group < 4; ++group) {
            EXPECT_EQ(controller.shares_of(group),
                      (std::vector<NodeShare>{{2 * group, 4}, {2 * group + 1, 4}}));
        }
    }
}

TEST(ParallelismController, KeepsAGroupOnANodeWhereverOneFitsAmongUnequalNodes) {
    // In the order of nodes (3+1, 3+1), both groups would span two nodes.
    const std::vector<int> nodes = nodes_of_sizes({3, 4, 1});
    const ParallelismController controller({8, 2, 4}, nodes);
    expect_consistent(controller, nodes);
    EXPECT_EQ(controller.shares_of(0), (std::vector<NodeShare>{{0, 3}, {2, 1}}));
    EXPECT_EQ(controller.shares_of(1), (std::vector<NodeShare>{{1, 4}}));
}

TEST(ParallelismController, JoinsRemaindersThatFitEachOther) {
    // P_degree 8: whole groups on nodes 0 and 2, then 5+3 and 6+2.
    const std::vector<int> nodes = nodes_of_sizes({13, 6, 10, 3});
    const ParallelismController controller({32, 4, 8}, nodes);
    expect_consistent(controller, nodes);
    const LayoutSummary summary = controller.summary();
    EXPECT_EQ(summary.groups_on_one_node, 2);
    EXPECT_EQ(summary.nodes_of_widest_group, 2);
}

TEST(ParallelismController, SupportsUnusedNodeNumbersAndUnequalNodesAtRandom) {
    for (std::uint32_t round = 0; round < 200; ++round) {
        CounterStream stream(7, RandomPurpose::test, round);
        const int degree = 1 + static_cast<int>(stream.below(9));
        const int groups = 1 + static_cast<int>(stream.below(9));
        const int ranks = degree * groups;
        std::vector<int> nodes;
        const std::uint32_t used = 1 + stream.below(static_cast<std::uint32_t>(ranks));
        for (int rank = 0; rank < ranks; ++rank)
            nodes.push_back(static_cast<int>(stream.below(used)));
        const ParallelismController controller({ranks, groups, degree}, nodes);
        expect_consistent(controller, nodes);
        std::map<int, int> sizes;
        for (const int node : nodes) ++sizes[node];
        int whole_groups = 0;
        for (const auto& [node, size] : sizes) whole_groups += size / degree;
        const LayoutSummary summary = controller.summary();
        EXPECT_EQ(summary.groups_on_one_node, whole_groups);
        EXPECT_EQ(summary.nodes, static_cast<int>(sizes.size()));
    }
}

TEST(ParallelismController, NumbersGroupsByTheirFirstNode) {
    const ParallelismController controller({24, 6, 4}, shuffled(fill_nodes(24, 6), 3));
    for (int group = 1; group < 6; ++group) {
        EXPECT_LE(controller.shares_of(group - 1).front().node,
                  controller.shares_of(group).front().node);
    }
}

TEST(ParallelismController, SumsUpForEstimates) {
    const LayoutSummary summary = ParallelismController({12, 2, 6}, fill_nodes(12, 5)).summary();
    EXPECT_EQ(summary.nodes, 3);
    EXPECT_EQ(summary.ranks_of_fullest_node, 5);
    EXPECT_EQ(summary.groups_on_one_node, 0);
    EXPECT_EQ(summary.nodes_of_widest_group, 2);
    ASSERT_EQ(summary.groups.size(), 2u);
    EXPECT_EQ(summary.groups[0], (std::vector<NodeShare>{{0, 5}, {2, 1}}));
    EXPECT_EQ(summary.groups[1], (std::vector<NodeShare>{{1, 5}, {2, 1}}));
}

TEST(ParallelismController, RejectsPlacesThatDoNotFitTheLayout) {
    EXPECT_THROW(ParallelismController({4, 2, 2}, {0, 0, 0}), Error);
    EXPECT_THROW(ParallelismController({4, 2, 3}, {0, 0, 0, 0}), Error);
    EXPECT_THROW(ParallelismController({2, 1, 2}, {0, 2}), Error);
    EXPECT_THROW(ParallelismController({2, 1, 2}, {0, -1}), Error);
    const ParallelismController controller({4, 2, 2}, {0, 0, 1, 1});
    EXPECT_THROW(controller.place(4), std::out_of_range);
    EXPECT_THROW(controller.place(-1), std::out_of_range);
    EXPECT_THROW(controller.world_rank_of(0, 2), std::out_of_range);
    EXPECT_THROW(controller.leader(2), std::out_of_range);
    EXPECT_THROW(controller.shares_of(-1), std::out_of_range);
}

TEST(ParallelismController, PlacesAHundredThousandRanksOfAnyShapeWellWithinTwoSeconds) {
    struct Shape {
        Layout layout;
        int ranks_per_node;
    };
    for (const Shape& shape : {Shape{{100000, 12500, 8}, 8}, Shape{{100000, 1, 100000}, 1},
                               Shape{{100000, 100000, 1}, 128}, Shape{{100000, 2, 50000}, 7}}) {
        const std::vector<int> nodes =
            shuffled(fill_nodes(shape.layout.ranks, shape.ranks_per_node), 5);
        const auto start = std::chrono::steady_clock::now();
        const ParallelismController controller(shape.layout, nodes);
        const LayoutSummary summary = controller.summary();
        EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(2));
        EXPECT_EQ(static_cast<int>(summary.groups.size()), shape.layout.groups);
    }
}

TEST(FillNodes, LeavesTheLastNodeWithTheRest) {
    EXPECT_EQ(fill_nodes(5, 2), (std::vector<int>{0, 0, 1, 1, 2}));
    EXPECT_THROW(fill_nodes(0, 2), Error);
    EXPECT_THROW(fill_nodes(2, 0), Error);
}

}  // namespace
}  // namespace hpcai::plan
