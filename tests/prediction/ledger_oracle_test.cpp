// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cstdlib>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <hpcai/metrics/ledger.hpp>

#include "models/networks.hpp"
#include "support/counting_oracle.hpp"
#include "support/largest_error.hpp"
#include "support/reference_json.hpp"

/// The FLOPs of whole networks by ledger.
namespace hpcai::prediction {
namespace {

double difference(const ops::Flops& a, const ops::Flops& b) {
    return static_cast<double>(
        std::max({std::abs(a.forward - b.forward), std::abs(a.weight_gradient - b.weight_gradient),
                  std::abs(a.input_gradient - b.input_gradient)}));
}

/// Adds the errors of every node's row and of the total, in every ledger.
void compare_with_walk(const graph::Graph& graph, const std::string& name,
                       tests::LargestError& error) {
    const metrics::FlopsLedger ledger(graph);
    ASSERT_EQ(ledger.rows().size(), graph.nodes().size());
    bool first_convolution = true;  // only this one reads pixels
    std::array<ops::Flops, ops::kLedgers.size()> totals{};
    for (std::size_t i = 0; i < graph.nodes().size(); ++i) {
        const ops::Operation& operation = graph.nodes()[i].operation;
        const bool first_layer =
            first_convolution && std::holds_alternative<ops::Convolution>(operation);
        first_convolution = first_convolution && !first_layer;
        const counting::Walk walk = counting::walk(operation);
        for (std::size_t j = 0; j < totals.size(); ++j) {
            const ops::Ledger column = ops::kLedgers[j].ledger;
            const ops::Flops counted = counting::flops(operation, walk, column, first_layer);
            error.add(
                difference(ledger.rows()[i].flops_in(column), counted),
                fmt::format("{}: {}, {}", name, graph.nodes()[i].name, ops::kLedgers[j].name));
            totals[j] += counted;
        }
    }
    for (std::size_t j = 0; j < totals.size(); ++j) {
        error.add(difference(ledger.total().flops_in(ops::kLedgers[j].ledger), totals[j]),
                  fmt::format("{}: total, {}", name, ops::kLedgers[j].name));
    }
}

TEST(FlopsLedger, OfAWholeResNetIsWhatWalkingItsLoopsCounts) {
    tests::LargestError error("FLOPs of whole ResNets against counted naive loops", 0);
    for (const bool stride_on_3x3 : {false, true}) {
        const std::string version = stride_on_3x3 ? "v1.5" : "v1";
        compare_with_walk(
            models::make_resnet50(
                {.image_size = 64,
                 .classes = 10,
                 .backbone = {.width = 8, .blocks = {1, 2, 1, 1}, .stride_on_3x3 = stride_on_3x3}}),
            "small ResNet " + version, error);
        compare_with_walk(
            models::make_resnet50({.image_size = 32, .backbone = {.stride_on_3x3 = stride_on_3x3}}),
            "ResNet-50 " + version + " at 32 x 32", error);
    }
}

TEST(FlopsLedger, OfResNet50V1IsWhatAiPerfsOwnProfilerCountsOfItsModel) {
    tests::LargestError error("FLOPs of ResNet-50 v1 against the profiler of AIPerf", 0);
    const nlohmann::json reference = tests::read_reference_json("metrics_aiperf.json");
    const metrics::FlopsLedger ledger(
        models::make_resnet50({.backbone = {.stride_on_3x3 = false}}));
    const std::int64_t forward = reference["resnet50_v1"]["forward"];
    const std::int64_t training = reference["resnet50_v1"]["training"];
    EXPECT_EQ(forward, 7'806'583'495);
    EXPECT_EQ(training, 23'053'458'315);
    const auto error_of = [](std::int64_t got, std::int64_t want) {
        return static_cast<double>(std::abs(got - want));
    };
    error.add(error_of(ledger.forward_per_sample(ops::Ledger::aiperf), forward), "forward");
    error.add(error_of(ledger.training_per_sample(ops::Ledger::aiperf), training), "training");
}

}  // namespace
}  // namespace hpcai::prediction
