// SPDX-License-Identifier: Apache-2.0
#include "results/previous_placement.hpp"

#include <gtest/gtest.h>

namespace hpcai::results {
namespace {

using Nodes = std::vector<int>;
using Hosts = std::vector<std::string>;

/// Calls nodes_of_hosts() for ranks that are now on these nodes and hosts and were on `hosts`.
Nodes find_nodes(const Nodes& nodes, const Hosts& now, const Hosts& hosts) {
    std::vector<PlaceRecord> current(nodes.size());
    for (std::size_t rank = 0; rank < nodes.size(); ++rank) {
        current[rank].node = nodes[rank];
        current[rank].host = now[rank];
    }
    return nodes_of_hosts(current, hosts);
}

TEST(NodesOfHosts, AreTheCurrentNodesIfNoRankHasMoved) {
    EXPECT_EQ(find_nodes({0, 0, 1, 1}, {"a", "a", "b", "b"}, {"a", "a", "b", "b"}),
              (Nodes{0, 0, 1, 1}));
    EXPECT_EQ(find_nodes({0, 1}, {"a", "a"}, {"a", "a"}), (Nodes{0, 1}))
        << "two nodes with the same name";
}

TEST(NodesOfHosts, GiveARankThatWasOnAnotherHostTheNodeOfThatHost) {
    EXPECT_EQ(find_nodes({0, 1}, {"b", "a"}, {"a", "a"}), (Nodes{1, 1}));
    EXPECT_EQ(find_nodes({0, 1}, {"b", "a"}, {"a", "b"}), (Nodes{1, 0}));
}

TEST(NodesOfHosts, GiveAHostThatIsGoneANumberOfItsOwn) {
    EXPECT_EQ(find_nodes({0, 0, 1, 1}, {"a", "a", "b", "b"}, {"c", "c", "b", "b"}),
              (Nodes{0, 0, 1, 1}));
    EXPECT_EQ(find_nodes({0, 0, 0, 0}, {"a", "a", "a", "a"}, {"c", "c", "a", "a"}),
              (Nodes{1, 1, 0, 0}));
    EXPECT_EQ(find_nodes({0, 0, 1, 1}, {"a", "a", "b", "b"}, {"c", "d", "c", "d"}),
              (Nodes{0, 1, 0, 1}));
    EXPECT_EQ(find_nodes({0, 1, 2}, {"a", "b", "c"}, {"d", "a", "b"}), (Nodes{2, 0, 1}))
        << "a and b have 0 and 1";
}

TEST(NodesOfHosts, KeepTheNodeOfARankIfSeveralNodesHaveTheHostsName) {
    EXPECT_EQ(find_nodes({0, 1, 2}, {"a", "a", "b"}, {"a", "a", "a"}), (Nodes{0, 1, 2}));
}

config::Config config_of(std::optional<int> groups, std::optional<int> degree) {
    config::Config config;
    config.bagging.groups = groups;
    config.bagging.degree = degree;
    config.training.batch_size = 8;
    return config;
}

TEST(ControllerForNodes, PlacesTheGroupsOfAnEarlierLaunch) {
    const config::Config config = config_of(2, 2);
    const plan::ParallelismController now({4, 2, 2}, {0, 0, 1, 1});
    const auto then = controller_for_nodes(config, now, {1, 1, 1, 1});
    EXPECT_EQ(then.summary().nodes, 1);
    EXPECT_EQ(then.place(3).group, 1);
    EXPECT_EQ(then.place(3).node_rank, 3);
}

TEST(ControllerForNodes, KeepsTheCurrentNodesIfTheGroupsWouldChange) {
    const plan::ParallelismController dealt({4, 2, 2}, {0, 1, 0, 1});
    EXPECT_EQ(controller_for_nodes(config_of(2, 2), dealt, {0, 0, 0, 0}).place(1).group, 1);
    const plan::ParallelismController full({4, 2, 2}, {0, 0, 1, 1});
    const auto open =
        controller_for_nodes(config_of(std::nullopt, std::nullopt), full, {0, 0, 0, 0});
    EXPECT_EQ(open.layout().degree, 2) << "not 4, the ranks of the fullest node";
    const plan::ParallelismController five({6, 3, 2}, {0, 0, 1, 1, 2, 2});
    EXPECT_EQ(controller_for_nodes(config_of(std::nullopt, std::nullopt), five, {0, 0, 0, 0, 1, 1})
                  .summary()
                  .nodes,
              3)
        << "4 does not divide 6";
}

}  // namespace
}  // namespace hpcai::results
