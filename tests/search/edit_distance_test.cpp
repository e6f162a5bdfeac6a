// SPDX-License-Identifier: Apache-2.0
#include "search/edit_distance.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

#include <hpcai/base/philox.hpp>
#include <hpcai/morphs/morph.hpp>

#include "example_search.hpp"
#include "support/largest_error.hpp"
#include "support/reference_json.hpp"

namespace hpcai::search {
namespace {

using nlohmann::json;

std::size_t number_of(const std::string& name) {
    static std::map<std::string, std::size_t> numbers;
    return numbers.emplace(name, numbers.size()).first->second;
}

Descriptor descriptor_of(const json& network) {
    Descriptor descriptor;
    for (const json& layer : network.at("layers")) {
        descriptor.layers.push_back({number_of(layer[0]), {layer[1], layer[2], layer[3]}});
    }
    for (const json& skip : network.at("skips")) {
        descriptor.skips.push_back({skip[0], skip[1], number_of(skip[2])});
    }
    return descriptor;
}

TEST(EditDistance, EqualsThatOfNni) {
    tests::LargestError error("edit distance of networks", 1e-12);
    const json file = tests::read_reference_json("search_distance.json");
    ASSERT_GE(file.at("pairs").size(), 50);
    for (const json& pair : file["pairs"]) {
        const Descriptor a = descriptor_of(pair.at("networks")[0]);
        const Descriptor b = descriptor_of(pair["networks"][1]);
        const double expected = pair.at("distance");
        error.add(std::abs(edit_distance(a, b) - expected));
        error.add(std::abs(edit_distance(b, a) - expected));
        EXPECT_EQ(edit_distance(a, a), 0);
    }
}

TEST(CheapestAssignment, IsTheSmallestOfAllAssignments) {
    CounterStream draws(5, RandomPurpose::test);
    for (std::size_t rows = 1; rows <= 5; ++rows) {
        const std::size_t columns = rows + draws.below(3);
        std::vector<double> costs(rows * columns);
        for (double& cost : costs) cost = draws.below(4) / 4.0;  // equal costs, too
        std::vector<std::size_t> order(columns);
        std::iota(order.begin(), order.end(), std::size_t{0});
        double smallest = std::numeric_limits<double>::infinity();
        do {
            double sum = 0;
            for (std::size_t row = 0; row < rows; ++row) sum += costs[row * columns + order[row]];
            smallest = std::min(smallest, sum);
        } while (std::ranges::next_permutation(order).found);
        EXPECT_EQ(cheapest_assignment(costs, rows, columns), smallest);
    }
    EXPECT_EQ(cheapest_assignment({}, 0, 3), 0);
}

TEST(Describe, FindsTheLongestChainAndTheShortcutsOfAResNet) {
    const Descriptor root = describe(example_root());
    // normalization of the input, stem of 4, four blocks of 10, pooling, classifier, loss
    EXPECT_EQ(root.layers.size(), 1 + 4 + 4 * 10 + 3);
    ASSERT_EQ(root.skips.size(), 4);  // the projections of the blocks
    for (std::size_t block = 0; block < 4; ++block) {
        EXPECT_EQ(root.skips[block].first, 5 + 10 * static_cast<double>(block));
        EXPECT_EQ(root.skips[block].last, root.skips[block].first + 8);  // the addition's place
    }
}

/// The distance between the root and its child by the first morph of a kind.
double distance_of(morphs::MorphKind kind) {
    const graph::Graph root = example_root();
    const auto morphs = morphs::legal_morphs(root);
    const auto morph = std::ranges::find(morphs, kind, &morphs::Morph::kind);
    const graph::Graph child = morphs::apply(root, *morph, 0, 0).graph;
    return edit_distance(describe(root), describe(child));
}

TEST(Describe, SeesEveryMorph) {
    EXPECT_DOUBLE_EQ(distance_of(morphs::MorphKind::wider), 0.5 / 3);  // twice as many filters
    const double kernel = distance_of(morphs::MorphKind::kernel);
    EXPECT_TRUE(kernel == 2.0 / 3 / 3 || kernel == 2.0 / 5 / 3 || kernel == 2.0 / 7 / 3) << kernel;
    EXPECT_GE(distance_of(morphs::MorphKind::skip), 2);    // an addition and a skip
    EXPECT_GE(distance_of(morphs::MorphKind::deeper), 8);  // seven layers and a skip
}

}  // namespace
}  // namespace hpcai::search
