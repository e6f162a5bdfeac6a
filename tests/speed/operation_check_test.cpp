// SPDX-License-Identifier: Apache-2.0
#include "speed/operation_check.hpp"

#include <vector>

#include <gtest/gtest.h>

namespace hpcai::speed {
namespace {

TEST(DistinctOperations, CountTheNodesOfEqualOperations) {
    graph::Graph graph;
    const auto add = [&](const std::string& name, graph::ValueId input) {
        return graph.add_node(name, ops::Relu{graph.value(input).shape}, {input});
    };
    const graph::ValueId x = graph.add_input("images", {2, 4, 4, 3}, tensor::DType::f32);
    add("third", add("second", add("first", x)));
    const std::vector<DistinctOperation> all = distinct_operations(graph);
    ASSERT_EQ(all.size(), 1U);
    EXPECT_EQ(all[0].node, "first");
    EXPECT_EQ(all[0].nodes, 3);
    EXPECT_TRUE(all[0].is_first_layer);
}

TEST(DistinctOperations, DifferInTheEpsilonOfANorm) {
    const tensor::Shape shape{2, 4, 4, 32};
    const auto norm = [&](double epsilon) { return ops::BatchNorm{shape, epsilon}; };
    const auto all_with = [&](double e) {
        return std::vector<ops::Operation>{
            norm(e),
            ops::GroupNorm{.input = shape, .epsilon = e},
            ops::DualNorm{norm(e), norm(1e-5)},
            ops::DualNorm{norm(1e-5), norm(e)},
            ops::PointwiseNorm{{.input = shape, .filters = 32}, norm(e)},
            ops::NormPool{norm(e), {.input = shape}}};
    };
    const auto count = [&](const ops::Operation& one, const ops::Operation& other) {
        graph::Graph graph;
        const graph::ValueId x = graph.add_input("images", shape, tensor::DType::f32);
        for (const ops::Operation& operation : {one, other}) {
            graph.add_node("node", operation, std::vector(input_shapes(operation).size(), x));
        }
        return distinct_operations(graph).size();
    };
    const auto usual = all_with(1e-5), other = all_with(1.0000001e-5), large = all_with(1e-3);
    EXPECT_EQ(count(large[2], large[3]), 2U) << "the outer or the inner norm";
    for (std::size_t i = 0; i < usual.size(); ++i) {
        SCOPED_TRACE(i);
        EXPECT_EQ(count(large[i], large[i]), 1U);
        EXPECT_EQ(count(usual[i], large[i]), 2U);
        EXPECT_EQ(count(usual[i], other[i]), 2U);
    }
}

}  // namespace
}  // namespace hpcai::speed
