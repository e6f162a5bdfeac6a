// SPDX-License-Identifier: Apache-2.0
#include <functional>
#include <sstream>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <hpcai/base/text.hpp>
#include <hpcai/records/json.hpp>
#include <hpcai/report/plots.hpp>
#include <hpcai/report/record_text.hpp>

#include "storage/temporary_folder.hpp"
#include "support/example_roofline.hpp"

namespace hpcai::report {
namespace {

using nlohmann::json;

std::string refusal_of_roofline(const std::function<void(json&)>& change) {
    json in = json::parse(records::to_json(example_roofline()));
    change(in);
    return storage::error_of(ExitCode::data,
                             [&] { records::from_json<RooflineRecord>(in.dump(), "r.json"); });
}

TEST(RooflineJson, ComesBackAsItWas) {
    EXPECT_EQ(records::from_json<RooflineRecord>(records::to_json(example_roofline()), "r.json"),
              example_roofline());
}

TEST(RooflineJson, RejectsWhatPredictionsCannotDivideBy) {
    const auto has = [](const std::string& message, const std::string& words) {
        EXPECT_NE(message.find(words), std::string::npos) << message;
    };
    has(refusal_of_roofline([](json& in) { in["schema"] = "hpcai500-result/4"; }), "schema");
    has(refusal_of_roofline([](json& in) { in["cores"] = 0; }), "cores: expected a number above 0");
    has(refusal_of_roofline([](json& in) { in["operations"][2]["bytes"] = -1; }),
        "operations[2].bytes");
    has(refusal_of_roofline([](json& in) { in["operations"][0]["flops_per_second"] = 0; }),
        "operations[0].flops_per_second");
    has(refusal_of_roofline([](json& in) { in["all_reduce_fits"][0]["bytes_per_second"] = 0; }),
        "all_reduce_fits[0].bytes_per_second");
    has(refusal_of_roofline([](json& in) { in["all_reduce_fits"][0]["latency_seconds"] = -1; }),
        "all_reduce_fits[0].latency_seconds");
    has(refusal_of_roofline([](json& in) { in["calibration"]["points"][1]["samples"] = 8; }),
        "calibration.points[1].samples");
    has(refusal_of_roofline(
            [](json& in) { in["calibration"]["points"][0]["step_seconds"] = nullptr; }),
        "calibration.points[0].step_seconds");
    has(refusal_of_roofline([](json& in) { in.erase("device"); }), "device: expected a value");
}

TEST(RooflineText, HasEveryMeasurementOnALine) {
    const std::string text = roofline_text(example_roofline());
    for (const char* words :
         {"roofline of 1 thread of a machine", "2 ranks on 1 node, 1 thread each, 2 cores",
          "gemm 2048", "100 GFLOPS", "100.0", "(3 layers)", "memory          9.60 GB/s",
          "host to device  none: the device's memory is the host's", "latency 100 us",
          "bandwidth 1.00 GB/s",
          "16 samples per rank: 1.80 s, 1.85 s with all-reduces of 95.4 MiB"}) {
        EXPECT_NE(text.find(words), std::string::npos) << words << " in\n" << text;
    }
}

TEST(RooflineText, FitsAPageAndNamesEachOperationOnce) {
    RooflineRecord record = example_roofline();
    record.device = "104 threads of a machine, " + std::string(50, 'a') + " in blocks of 16";
    const OperationRate rate = record.operations.back();
    record.operations.push_back(rate);
    record.operations.back().pass = "weight_gradient";
    std::istringstream lines(roofline_text(record));
    int named = 0;
    for (std::string line; std::getline(lines, line);) {
        EXPECT_LE(line.size(), kPageWidth) << line;
        named += line.starts_with(rate.name + " in " + rate.precision + ": ") ? 1 : 0;
    }
    EXPECT_EQ(named, 1);
}

TEST(RooflineText, CountsWhatThereWasNoTimeFor) {
    RooflineRecord record = example_roofline();
    for (OperationRate& rate : record.operations) {
        if (rate.of_model) rate.seconds = rate.flops_per_second = {std::nullopt, "no time"};
    }
    const std::string text = roofline_text(record);
    EXPECT_EQ(text.find("layer1.0.conv1"), std::string::npos) << text;
    EXPECT_NE(text.find("not measured: 2 operations"), std::string::npos) << text;
    record.calibration.reason = "no time was left for 32 samples";
    EXPECT_TRUE(roofline_text(record).ends_with(
        "\n  not measured: no time was left for 32 samples (--seconds)\n"));
}

TEST(RooflineText, LetsNoNameFakeALine) {
    RooflineRecord record = example_roofline();
    record.device = "x\nRESULT VALID";
    EXPECT_EQ(roofline_text(record).find("\nRESULT"), std::string::npos);
}

RooflinePlot example_plot() {
    return {"a <model>",
            {1e10, ""},
            {{"large matrix product", 1e11}},
            {{"conv1", "convolution", "forward", 1e9, 1e7, 0.02},
             {"bn1", "batch_norm", "forward", 1e6, 1e7, 0.002},
             {"loss", "softmax", "forward", 0, 1e3, 0.001}}};
}

TEST(RooflineSvg, HasADotForEachOperationThatHasFlops) {
    const std::string svg = roofline_svg(example_plot());
    EXPECT_NE(svg.find("conv1 forward: 50.0 GFLOPS, 100 FLOP/B"), std::string::npos) << svg;
    EXPECT_NE(svg.find("bn1 forward: 500 MFLOPS, 0.1 FLOP/B"), std::string::npos) << svg;
    EXPECT_EQ(svg.find("loss forward"), std::string::npos) << "it has no FLOPs";
    EXPECT_NE(svg.find("large matrix product 100 GFLOPS"), std::string::npos);
    EXPECT_NE(svg.find("memory 10.0 GB/s"), std::string::npos);
}

TEST(RooflineSvg, IsXmlForBothKindsOfPageWhateverTheNames) {
    const std::string svg = roofline_svg(example_plot());
    EXPECT_TRUE(svg.starts_with("<svg ")) << svg.substr(0, 20);
    EXPECT_NE(svg.find("a &lt;model&gt;"), std::string::npos);
    EXPECT_NE(svg.find("prefers-color-scheme:dark"), std::string::npos);
    EXPECT_EQ(svg.find("nan"), std::string::npos);
    EXPECT_EQ(svg.find("inf"), std::string::npos);
}

TEST(RooflineSvg, PutsAFasterOperationHigher) {
    RooflinePlot plot = example_plot();
    plot.operations = {{"slow", "k", "forward", 1e9, 1e7, 1.0},
                       {"fast", "k", "forward", 1e9, 1e7, 0.02}};
    const std::string svg = roofline_svg(plot);
    const auto height = [&](std::size_t from) {
        const std::size_t at = svg.find("cy=\"", from) + 4;
        return std::stod(svg.substr(at));
    };
    const std::size_t first = svg.find("<circle");
    EXPECT_GT(height(first), height(svg.find("<circle", first + 1)));
}

TEST(RooflineSvg, HasAMemoryLineThroughAnOperationAtTheRateOfMemory) {
    RooflinePlot plot = example_plot();  // both operations are left of the ridge
    plot.operations = {{"slow", "k", "forward", 1e8, 1e9, 0.1},
                       {"at the rate", "k", "forward", 1e9, 1e9, 0.1}};
    const std::string svg = roofline_svg(plot);
    const std::size_t dot = svg.rfind("<circle");
    const auto attribute = [&](const std::string& name) {
        const std::size_t begin = svg.find(name + "=\"", dot) + name.size() + 2;
        return svg.substr(begin, svg.find('"', begin) - begin);
    };
    EXPECT_NE(svg.find(" " + attribute("cx") + "," + attribute("cy") + "\"/>"), std::string::npos)
        << svg;
}

TEST(RooflineSvg, NeedsAnOperation) {
    storage::error_of(ExitCode::data, [] { roofline_svg({}); });
}

TEST(SweepSvg, OmitsWhatIsNotKnown) {
    const SweepRecord sweep{"a model",
                            "here",
                            2,
                            8,
                            {{1, {{}, "no multiple"}, {{}, "no multiple"}, {1e9, ""}, {1, ""}},
                             {2, {2e9, ""}, {1, ""}, {1.5e9, ""}, {0.75, ""}}},
                            {}};
    const std::string svg = sweep_svg(sweep);
    EXPECT_NE(svg.find("Predicted, not measured: a model"), std::string::npos);
    EXPECT_NE(svg.find("2 ranks: 1.50 GFLOPS, efficiency 75.0 %"), std::string::npos) << svg;
    EXPECT_EQ(svg.find("nan"), std::string::npos);
    storage::error_of(ExitCode::data, [] { sweep_svg({}); });
}

}  // namespace
}  // namespace hpcai::report
