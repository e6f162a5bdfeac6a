// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <gtest/gtest.h>

#include <hpcai/base/error.hpp>
#include <hpcai/metrics/ledger.hpp>

namespace hpcai::metrics {
namespace {

using ops::Ledger;

constexpr std::int64_t kSize = 8;

/// Returns a network of 8 x 8 x 3 pixels: a 3 x 3 convolution to 4 channels, ReLU, mean, two
/// classes.
graph::Graph small_network(std::int64_t batch, bool fused = false) {
    graph::Graph graph;
    const auto pixels = graph.add_input("images", {batch, kSize, kSize, 3}, tensor::DType::u8);
    const auto filters =
        graph.add_parameter({"conv.weight", {4, 3, 3, 3}, graph::ParameterKind::filters});
    const tensor::Shape wide{batch, kSize, kSize, 4};
    auto x = graph.add_node("conv", ops::Convolution{graph.value(pixels).shape, 4, 3, 1, 1},
                            {pixels}, {filters});
    if (fused) x = graph.add_node("norm", ops::BatchNorm{.input = wide, .relu = true}, {x});
    x = graph.add_node("relu", ops::Relu{wide}, {x});
    x = graph.add_node("mean", ops::GlobalAveragePool{wide}, {x});
    const auto weight =
        graph.add_parameter({"fc.weight", {2, 4}, graph::ParameterKind::linear_weight});
    const auto bias = graph.add_parameter({"fc.bias", {2}, graph::ParameterKind::bias});
    graph.add_node("fc", ops::Linear{{batch, 4}, 2}, {x}, {weight, bias});
    return graph;
}

TEST(FlopsLedger, HasARowForEachNode) {
    const FlopsLedger ledger(small_network(1));
    ASSERT_EQ(ledger.rows().size(), 4u);
    const LedgerRow& conv = ledger.rows()[0];
    EXPECT_EQ(conv.node, "conv");
    EXPECT_EQ(conv.operation, "convolution");
    EXPECT_EQ(conv.output, (tensor::Shape{1, 8, 8, 4}));
    EXPECT_EQ(conv.parameters, 4 * 3 * 3 * 3);
    EXPECT_EQ(conv.activation_elements, 256);
    EXPECT_EQ(ledger.rows()[3].parameters, 10);
}

TEST(FlopsLedger, CountsAsComputedByHand) {
    const FlopsLedger ledger(small_network(1));
    const std::int64_t conv = 2 * 64 * 4 * 27;
    const LedgerRow& row = ledger.rows()[0];
    EXPECT_EQ(row.flops_in(Ledger::table3).training(), 3 * conv);
    EXPECT_EQ(row.flops_in(Ledger::two_mac).forward, conv);
    EXPECT_EQ(row.flops_in(Ledger::two_mac).weight_gradient, conv);
    EXPECT_EQ(row.flops_in(Ledger::two_mac).input_gradient, 0) << "no earlier layer is trained";
    EXPECT_EQ(row.flops_in(Ledger::aiperf).weight_gradient, conv + 2 * 108);

    const std::int64_t relu_and_mean = 256 + 256;
    EXPECT_EQ(ledger.forward_per_sample(Ledger::table3), conv + relu_and_mean + 8);
    EXPECT_EQ(ledger.training_per_sample(Ledger::table3), 3 * (conv + relu_and_mean + 8));
    EXPECT_EQ(ledger.forward_per_sample(Ledger::two_mac), conv + 16);
    EXPECT_EQ(ledger.training_per_sample(Ledger::two_mac), 2 * conv + 3 * 16);
}

TEST(FlopsLedger, TotalsAreTheSumsOfTheRows) {
    const FlopsLedger ledger(small_network(1));
    std::int64_t elements = 0;
    for (const LedgerRow& row : ledger.rows()) elements += row.activation_elements;
    EXPECT_EQ(ledger.total().activation_elements, elements);
    EXPECT_EQ(ledger.total().parameters, 108 + 10);
    for (const ops::LedgerName& name : ops::kLedgers) {
        std::int64_t training = 0;
        for (const LedgerRow& row : ledger.rows()) training += row.flops_in(name.ledger).training();
        EXPECT_EQ(ledger.training_per_sample(name.ledger), training) << name.name;
        EXPECT_EQ(ledger.training_per_sample(name.ledger),
                  graph::flops(small_network(1), name.ledger).training())
            << name.name;
    }
}

TEST(FlopsLedger, RejectsABatchAndFusedNodes) {
    EXPECT_THROW(FlopsLedger(small_network(2)), Error);
    EXPECT_THROW(FlopsLedger(small_network(1, true)), Error);
}

}  // namespace
}  // namespace hpcai::metrics
