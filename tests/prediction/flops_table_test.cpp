// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <hpcai/base/text.hpp>
#include <hpcai/config/reader.hpp>
#include <hpcai/models/make_model.hpp>
#include <hpcai/prediction/estimate.hpp>

namespace hpcai::prediction {
namespace {

using nlohmann::json;

std::vector<std::string> lines_of(const std::string& text) {
    std::vector<std::string> lines;
    std::istringstream stream(text);
    for (std::string line; std::getline(stream, line);) lines.push_back(line);
    return lines;
}

config::Config v1() {
    config::Config config;
    config.workload.model = config::Model::resnet50_v1;
    return config;
}

TEST(FlopsJson, HasTheKnownTotalsOfV15) {
    const json total = json::parse(flops_json({}))["total"];
    EXPECT_EQ(total["parameters"], 25'557'032);
    EXPECT_EQ(total["flops"]["two_mac"]["forward"], 8'178'368'512);
    EXPECT_EQ(total["flops"]["table3"]["forward"], 8'203'465'728);
    EXPECT_EQ(total["flops"]["table3"]["training"], 3 * 8'203'465'728);
}

TEST(FlopsJson, HasTheKnownTotalsOfV1) {
    const json total = json::parse(flops_json(v1()))["total"];
    EXPECT_EQ(total["parameters"], 25'557'032);
    EXPECT_EQ(total["flops"]["two_mac"]["forward"], 7'715'946'496);
    EXPECT_EQ(total["flops"]["table3"]["forward"], 7'739'990'016);
}

TEST(FlopsJson, CountsTwoMacWithoutTheFirstLayersInputGradient) {
    const json total = json::parse(flops_json({}))["total"]["flops"]["two_mac"];
    const std::int64_t forward = total["forward"];
    const std::int64_t first = 2LL * 112 * 112 * 64 * 7 * 7 * 3;
    EXPECT_EQ(total["weight_gradient"], forward);
    EXPECT_EQ(total["input_gradient"], forward - first);
    EXPECT_EQ(total["training"], 3 * forward - first);
}

TEST(FlopsJson, NodesAddUpToTheTotal) {
    const json document = json::parse(flops_json({}));
    std::int64_t parameters = 0, bytes = 0, training = 0;
    for (const json& node : document["nodes"]) {
        parameters += node["parameters"].get<std::int64_t>();
        bytes += node["activation_bytes"].get<std::int64_t>();
        training += node["flops"]["aiperf"]["training"].get<std::int64_t>();
    }
    EXPECT_EQ(document["total"]["parameters"], parameters);
    EXPECT_EQ(document["total"]["activation_bytes"], bytes);
    EXPECT_EQ(document["total"]["flops"]["aiperf"]["training"], training);
}

TEST(FlopsJson, CountsActivationsInTheConfiguredPrecision) {
    config::Config config;
    const json automatic = json::parse(flops_json(config));
    EXPECT_EQ(automatic["precision"], "fp32");
    EXPECT_EQ(automatic["precision_assumed"], true);
    config.training.precision = config::Precision::bf16;
    const json bf16 = json::parse(flops_json(config));
    EXPECT_EQ(bf16["precision_assumed"], false);
    const auto bytes = [](const json& document, const std::string& name) {
        for (const json& node : document["nodes"]) {
            if (node["node"] == name) return node["activation_bytes"].get<std::int64_t>();
        }
        return std::int64_t{-1};
    };
    EXPECT_EQ(bytes(automatic, "conv1"), 112 * 112 * 64 * 4);
    EXPECT_EQ(bytes(bf16, "conv1"), 112 * 112 * 64 * 2);
    EXPECT_EQ(bytes(bf16, "fc"), 1000 * 4) << "logits stay fp32";
}

TEST(FlopsTable, HasOneLinePerNodeAndTheTotals) {
    const std::vector<std::string> lines = lines_of(flops_table({}));
    const graph::Graph graph = models::make_model({});
    for (const graph::Node& node : graph.nodes()) {
        const auto count = std::ranges::count_if(
            lines, [&](const std::string& line) { return line.starts_with(node.name + " "); });
        EXPECT_EQ(count, 1) << node.name;
    }
    EXPECT_LT(lines.size(), 2 * graph.nodes().size() + 17);
    const std::string text = flops_table({});
    for (const char* number : {"8 203 465 728", "24 610 397 184", "8 178 368 512", "25 557 032"}) {
        EXPECT_NE(text.find(number), std::string::npos) << number;
    }
}

TEST(FlopsTable, KeepsItsColumns) {
    std::size_t width = 0;
    for (const std::string& line : lines_of(flops_table(v1()))) {
        if (line.find('|') == std::string::npos) continue;
        if (width == 0) width = line.size();
        EXPECT_EQ(line.size(), width) << line;
    }
}

TEST(FlopsTable, FitsAPageEvenForADetector) {
    const config::Config detector = config::parse(
        "workload: {kind: extreme_weather, model: faster_rcnn_r50_fpn, classes: 4,\n"
        "  image_size: 768, image_width: 1152, channels: 16}\n"
        "bagging: {aggregation: wbf, out_of_bag: false}\n"
        "data: {kind: climate_hdf5, path: '-', validation_path: '-'}",
        "test", {});
    for (const std::string& line : lines_of(flops_table(detector)))
        EXPECT_LE(line.size(), kPageWidth) << line;
}

}  // namespace
}  // namespace hpcai::prediction
