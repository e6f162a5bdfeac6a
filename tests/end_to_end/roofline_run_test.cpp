// SPDX-License-Identifier: Apache-2.0
#include <regex>

#include "launch.hpp"

namespace hpcai::end_to_end {
namespace {

using cli::TemporaryFolder;

Outcome measure(const fs::path& folder, int ranks, const std::vector<std::string>& options) {
    std::vector<std::string> words{cli::environment("HPCAI500_MPIRUN"),
                                   "--bind-to",
                                   "none",
                                   "-np",
                                   std::to_string(ranks),
                                   cli::environment("HPCAI500_BINARY"),
                                   "roofline",
                                   "--config",
                                   "tiny.yaml",
                                   "--seconds",
                                   "2"};
    words.insert(words.end(), options.begin(), options.end());
    return cli::execute_in(folder, words);
}

TEST(RooflineRun, OfTwoRanksMeasuresSumsAndIsTheCeilingOfARun) {
    const TemporaryFolder folder;
    make_pictures(folder.path());
    write(folder / "tiny.yaml", kConfig);
    const Outcome outcome =
        measure(folder.path(), 2, {"--precision", "fp32", "--output", "roofline.json", "--json"});
    ASSERT_EQ(outcome.exit_code, 0) << outcome.error;
    EXPECT_EQ(outcome.out, text_of(folder / "roofline.json")) << "one rank prints";
    const nlohmann::json roofline = json_of(folder / "roofline.json");
    EXPECT_EQ(roofline["ranks"], 2);
    ASSERT_GE(roofline["all_reduce"].size(), 2U);
    EXPECT_EQ(roofline["all_reduce"][0]["ranks"], 2);
    const nlohmann::json& points = roofline["calibration"]["points"];
    ASSERT_FALSE(points.empty());
    for (std::size_t i = 0; i < points.size(); ++i) {
        EXPECT_EQ(points[i]["samples"], 2 << i) << "a quarter, a half and all of 8, as time allows";
    }
    EXPECT_GT(points.back()["summed_step_seconds"], 0);

    const Outcome ran = run_ranks(folder.path(), 2, {"run.roofline=roofline.json"});
    ASSERT_EQ(ran.exit_code, 0) << ran.error;
    const nlohmann::json result = json_of(folder / "result" / "result.json");
    double fastest = 0;
    for (const nlohmann::json& rate : roofline["operations"]) {
        if (rate["of_model"] != (rate["operation"] == "convolution")) continue;
        const std::string shape =
            rate["shape"];  // of a feature map of 1 to 4 pixels, mostly padding
        if (std::regex_match(shape, std::regex(R"(\d+ x [1-4] x .*filters of [3-7] x.*)")))
            continue;
        if (!rate["flops_per_second"].is_null()) {
            fastest = std::max(fastest, rate["flops_per_second"].get<double>());
        }
    }
    EXPECT_EQ(result["roofline"]["source"], "roofline.json");
    EXPECT_EQ(result["roofline"]["ceiling_flops"], fastest);
    const double flops = result["scores"]["flops"];
    EXPECT_DOUBLE_EQ(result["utilization"]["fraction"], flops / 2 / fastest);
    EXPECT_NE(ran.out.find("utilization         : "), std::string::npos) << ran.out;
}

TEST(RooflineRun, MeasuresBeforeTrainingWhereAskedTo) {
    const TemporaryFolder folder;
    make_pictures(folder.path());
    write(folder / "tiny.yaml", kConfig);
    const Outcome ran = run_ranks(folder.path(), 2, {"run.roofline=measure"});
    ASSERT_EQ(ran.exit_code, 0) << ran.error;
    const nlohmann::json result = json_of(folder / "result" / "result.json");
    EXPECT_EQ(result["roofline"]["source"], "measured before training");
    EXPECT_GT(result["roofline"]["ceiling_flops"], 0);
    EXPECT_GT(result["utilization"]["fraction"], 0);
}

TEST(RooflineRun, IsRejectedWithAnInvalidFile) {
    const TemporaryFolder folder;
    make_pictures(folder.path());
    write(folder / "tiny.yaml", kConfig);
    write(folder / "bad.json", "{\"schema\": \"hpcai500-roofline/1\"}");
    for (const auto& [file, words] : {std::pair{"bad.json", "run.roofline: 'bad.json'"},
                                      {"none.json", "run.roofline: cannot read 'none.json'"}}) {
        const Outcome ran = run_ranks(folder.path(), 2, {std::string("run.roofline=") + file});
        EXPECT_EQ(ran.exit_code, 4) << ran.error;
        ASSERT_EQ(messages(ran).size(), 1U) << ran.error;
        EXPECT_NE(messages(ran)[0].find(words), std::string::npos) << ran.error;
        EXPECT_FALSE(fs::exists(folder / "result"));
    }
}

TEST(RooflineRun, OfInputComparesItsSourcesWithAStep) {
    const TemporaryFolder folder;
    make_pictures(folder.path());
    write(folder / "tiny.yaml", kConfig);
    const std::vector<std::string> words{"roofline",  "--config",  "tiny.yaml", "--input",
                                         "set/train", "--seconds", "1"};
    const Outcome outcome = cli::run_in(folder.path(), words);
    ASSERT_EQ(outcome.exit_code, 0) << outcome.error;
    for (const char* text :
         {"\ntraining step                  1      8 ", "\nfiles, read ",
          "\ncrops, decoded by CPU          1      1 ",
          "\nbatches, decoder cpu           1      8 ", "\nWith data.decoder cpu, a step "}) {
        EXPECT_NE(outcome.out.find(text), std::string::npos) << text << " in\n" << outcome.out;
    }
    EXPECT_EQ(outcome.out.find("GPU"), std::string::npos) << outcome.out;
    std::vector<std::string> as_json = words;
    as_json.emplace_back("--json");
    const Outcome rejected = cli::run_in(folder.path(), as_json);
    EXPECT_EQ(rejected.exit_code, 2);
    EXPECT_NE(rejected.error.find("roofline --input: prints a table"), std::string::npos)
        << rejected.error;
}

}  // namespace
}  // namespace hpcai::end_to_end
