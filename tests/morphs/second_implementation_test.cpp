// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "cli/child_process.hpp"
#include "morphs/scripts.hpp"

/// Graphs of children against scripts/verify_result, exactly.
namespace hpcai::morphs {
namespace {

using graph::Graph;
using nlohmann::json;

json to_json(const Morph& morph) {
    return {name_of(morph.kind), morph.node, morph.end, morph.amount};
}

/// The counts of one sample, and what the graph consists of.
json counts(const Graph& graph) {
    json counted{
        {"layers", json::array()}, {"parameters", json::array()}, {"statistics", json::array()}};
    for (const ops::LedgerName& row : ops::kLedgers) {
        const ops::Flops flops = graph::flops(graph, row.ledger);
        counted["flops"][std::string(row.name)] = {flops.training(), flops.forward};
    }
    for (const graph::Node& node : graph.nodes()) {
        if (node.name != "normalize" && node.name != "loss") counted["layers"].push_back(node.name);
    }
    for (const graph::Parameter& parameter : graph.parameters()) {
        const tensor::Shape& shape = parameter.shape;
        const bool is_filters = shape.rank() == 4;
        const std::int64_t channels = shape.rank() > 1 ? shape[shape.rank() - 1] : 1;
        counted["parameters"].push_back(
            {parameter.name, shape[0], channels, is_filters ? shape[1] * shape[2] : 1});
    }
    for (const graph::NormStatistics& statistics : graph.statistics()) {
        counted["statistics"].push_back({statistics.name, statistics.channels});
    }
    return counted;
}

/// A root and the configuration that describes it.
struct Root {
    Graph graph;
    json description;
};

Root root_of(const models::ResNet50& options) {
    const auto& backbone = options.backbone;
    return {make_resnet50(options),
            {{"workload.image_size", std::to_string(options.image_size)},
             {"workload.channels", std::to_string(options.channels)},
             {"workload.backbone_width", std::to_string(backbone.width)},
             {"workload.classes", std::to_string(options.classes)},
             {"workload.model", backbone.stride_on_3x3 ? "resnet50" : "resnet50_v1"},
             {"search.plain_deepening", "true"},
             {"search.root_blocks", json(backbone.blocks).dump()}}};
}

json case_of(const Root& root, std::uint32_t edits, std::uint32_t number) {
    json legal = json::array(), script = json::array();
    Graph graph = root.graph;
    std::uint32_t position = 0;
    for (const Morph& morph : random_script(root.graph, edits, number, true)) {
        json all = json::array();
        for (const Morph& one : legal_morphs(graph, true)) all.push_back(to_json(one));
        legal.push_back(std::move(all));
        script.push_back(to_json(morph));
        graph = apply(graph, morph, position++, 0).graph;
    }
    json result = counts(graph);
    result["root"] = root.description;
    result["script"] = script;
    result["legal"] = legal;
    return result;
}

TEST(SecondImplementation, CountsTheSameFlopsAndAllowsTheSameEdits) {
    const Root small = root_of(small_root(1));
    const Root odd =
        root_of({.batch = 1,
                 .image_size = 75,
                 .classes = 3,
                 .backbone = {.width = 6, .blocks = {2, 1, 3, 1}, .stride_on_3x3 = false}});
    const Root published = root_of({.batch = 1, .backbone = {.stride_on_3x3 = false}});
    json cases = json::array();
    for (std::uint32_t number = 0; number < 30; ++number) {
        cases.push_back(case_of(small, 12, 200 + number));
        cases.push_back(case_of(odd, 8, 300 + number));
    }
    for (std::uint32_t number = 0; number < 3; ++number) {
        cases.push_back(case_of(published, 3, 400 + number));
    }
    cases.push_back(case_of(published, 0, 0));
    // What AIPerf's own profiler counts of its root.
    EXPECT_EQ(cases.back()["flops"]["aiperf"], json({23'053'458'315, 7'806'583'495}));
    const storage::TemporaryFolder folder;
    std::ofstream(folder / "cases.json") << cases;
    const cli::Outcome outcome = cli::execute_in(
        folder.path(), {"python3", cli::source("tests/morphs/second_implementation.py"),
                        cli::source("scripts/verify_result"), "cases.json"});
    EXPECT_EQ(outcome.exit_code, 0) << outcome.error;
    EXPECT_EQ(outcome.out, "64 cases agree\n");
}

}  // namespace
}  // namespace hpcai::morphs
