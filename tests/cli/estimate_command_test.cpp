// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <hpcai/base/units.hpp>
#include <hpcai/records/json.hpp>

#include "child_process.hpp"
#include "support/example_roofline.hpp"

namespace hpcai::cli {
namespace {

Outcome plan(std::vector<std::string> more) {
    more.insert(more.begin(), {"plan", "--config", source("configs/imagenet_goyal.yaml")});
    return run(more);
}

TEST(Plan, PrintsTheLayoutForPeopleAndForPrograms) {
    const Outcome text = plan({"--ranks", "256", "--ranks-per-node", "8"});
    EXPECT_EQ(text.exit_code, 0) << text.error;
    EXPECT_NE(text.out.find("256 ranks = M 32 x P_degree 8"), std::string::npos) << text.out;
    const Outcome json = plan({"--ranks", "256", "--ranks-per-node", "8", "--json"});
    EXPECT_EQ(nlohmann::json::parse(json.out)["schema"], "hpcai500-plan/2");
}

TEST(Plan, KnowsDataAndDurationOfASearchByTheRulesOfAiperf) {
    const Outcome outcome =
        run({"plan", "--config", source("configs/architecture_search_imagenet.yaml"), "--ranks",
             "16", "--ranks-per-node", "8", "--images-per-second", "1000", "--json"});
    ASSERT_EQ(outcome.exit_code, 0) << outcome.error;
    EXPECT_EQ(outcome.error.find("INVALID"), std::string::npos) << outcome.error;
    const auto record = nlohmann::json::parse(outcome.out);
    EXPECT_EQ(record["data"]["samples"], 1281167);
    EXPECT_EQ(record["time"]["run_seconds"], 43200);
    EXPECT_GT(record["search"]["trials_per_hour"].get<double>(), 0);
}

TEST(Plan, NamesWhatARankingWillLack) {
    const Outcome broken = plan({"--ranks", "8", "--set", "workload.epochs=10"});
    EXPECT_NE(broken.error.find(
                  "the result will be INVALID: rule 3: workload.epochs must be 90, is 10\n"),
              std::string::npos)
        << broken.error;
    const Outcome lacking = plan({"--ranks", "8", "--json", "--set", "submission.problem=ImageNet",
                                  "--set", "training.batch_size=256"});
    EXPECT_EQ(lacking.exit_code, 0) << lacking.error;
    EXPECT_NE(lacking.error.find("not rankable: the section submission lacks system_name,\n"
                                 "    organization, hardware, "),
              std::string::npos)
        << lacking.error;
    EXPECT_EQ(lacking.error.find("contact"), std::string::npos) << "a ranking does not need it";
    EXPECT_EQ(lacking.error.find("problem"), std::string::npos);
    const Outcome custom =
        plan({"--ranks", "8", "--set", "run.level=custom", "--set", "training.batch_size=256"});
    EXPECT_EQ(custom.error, "");
}

TEST(Plan, TakesTheNumberOfMiniSamplesFromTheRules) {
    const Outcome outcome =
        run({"plan", "--config", source("configs/mini_image_classification.yaml"), "--set",
             "data.path=no/such", "--set", "run.repeat=2", "--images-per-second", "100"});
    EXPECT_EQ(outcome.exit_code, 0) << outcome.error;
    EXPECT_NE(outcome.out.find("1 536 samples (counted, given or fixed by the rules)"),
              std::string::npos)
        << outcome.out;
    EXPECT_NE(outcome.error.find("run.repeat is 2"), std::string::npos) << outcome.error;
}

TEST(Plan, TakesSamplesRateAndPowerFromTheUser) {
    const Outcome outcome = plan({"--ranks", "8", "--samples", "8192000", "--flops-per-rank",
                                  "2e13", "--watts-per-rank", "300"});
    EXPECT_EQ(outcome.exit_code, 0) << outcome.error;
    EXPECT_NE(outcome.out.find("8 192 000 samples"), std::string::npos) << outcome.out;
    EXPECT_EQ(outcome.out.find("unknown"), std::string::npos) << outcome.out;
}

TEST(Plan, TakesNodesGpusAndImagesPerSecond) {
    const Outcome by_nodes = plan({"--nodes", "4", "--gpus-per-node", "8", "--samples", "1281167",
                                   "--images-per-second", "100", "--json"});
    ASSERT_EQ(by_nodes.exit_code, 0) << by_nodes.error;
    const auto record = nlohmann::json::parse(by_nodes.out);
    EXPECT_EQ(record["layout"]["ranks"], 32);
    EXPECT_EQ(record["memory_per_rank"]["precision"], "mixed") << "that of a GPU";
    const double samples_per_rank = record["batch_size"].get<double>() / 8;
    EXPECT_NEAR(record["time"]["step_seconds"].get<double>(), samples_per_rank / 100, 1e-3);
    expect_refused(plan({"--nodes", "4"}), 2, "--nodes: expected --gpus-per-node");
    expect_refused(plan({"--nodes", "4", "--ranks-per-node", "8", "--ranks", "32"}), 2,
                   "no --ranks");
    expect_refused(plan({"--ranks", "8", "--gpus-per-node", "8", "--ranks-per-node", "4"}), 2,
                   "expected one GPU per rank, got 8 for 4 ranks per node");
    expect_refused(plan({"--ranks", "8", "--images-per-second", "9", "--flops-per-rank", "9"}), 2,
                   "expected one of --roofline, --flops-per-rank and --images-per-second, got 2");
}

TEST(Plan, TakesTheDevicesAndLinksOfAMachine) {
    const std::string machine = source("configs/machines/h200.yaml");
    const Outcome planned = plan({"--nodes", "16", "--machine", machine, "--json"});
    ASSERT_EQ(planned.exit_code, 0) << planned.error;
    const auto record = nlohmann::json::parse(planned.out);
    EXPECT_EQ(record["layout"]["ranks"], 128);
    EXPECT_EQ(record["memory_per_rank"]["precision"], "mixed");
    EXPECT_EQ(record["time"]["source"],
              "predicted from the training rate of NVIDIA H200 SXM in mixed");
    EXPECT_GT(record["time"]["run_seconds"].get<double>(), 0);
    const Outcome large =
        plan({"--nodes", "1", "--machine", machine, "--set", "training.batch_size=80000"});
    EXPECT_NE(large.error.find("GiB: a rank needs "), std::string::npos) << large.error;
    const Outcome swept = plan({"--sweep", "ranks=8..16", "--machine", machine, "--set",
                                "training.batch_size=80000", "--set", "bagging.P_degree=8"});
    EXPECT_TRUE(swept.error.starts_with("the memory of --machine is too small by ")) << swept.error;
    expect_refused(
        plan({"--nodes", "1", "--machine", machine, "--gpus-per-node", "16"}), 2,
        "--gpus-per-node: expected at most 8, the GPUs of a node in " + machine + ", got 16");
    expect_refused(plan({"--nodes", "1", "--machine", machine, "--set", "device.kind=cpu"}), 2,
                   "expected device.kind auto or cuda, got cpu");
    EXPECT_EQ(plan({"--nodes", "16", "--machine", "h200", "--json"}).out, planned.out);
    expect_refused(plan({"--nodes", "16", "--machine", "h20"}), 2,
                   "plan: --machine: expected a file or one of a100, epyc_7763, h100, h200, got "
                   "'h20'; did you mean 'h200'?");
    expect_refused(plan({"--nodes", "16", "--machine", "./h200"}), 2,
                   "plan: --machine: './h200': cannot be read");
    expect_refused(plan({"--nodes", "16", "--roofline", "none.json"}), 4,
                   "plan: --roofline: cannot read 'none.json': No such file");
}

TEST(Plan, HasTheRanksAndNodesOfTheRooflineByDefault) {
    const TemporaryFolder folder;
    const std::string roofline = (folder / "roofline.json").string();
    std::ofstream(roofline) << records::to_json(example_roofline());
    const auto ranks = [&](std::vector<std::string> more) {
        more.insert(more.end(), {"--roofline", roofline, "--json"});
        const Outcome outcome = plan(more);
        EXPECT_EQ(outcome.exit_code, 0) << outcome.error;
        return nlohmann::json::parse(outcome.out)["layout"]["ranks"].get<int>();
    };
    EXPECT_EQ(ranks({}), 2);
    EXPECT_EQ(ranks({"--nodes", "3"}), 6);
    EXPECT_EQ(ranks({"--nodes", "3", "--machine", "h200"}), 6) << "not the GPUs of the machine";
    EXPECT_EQ(ranks({"--ranks", "6"}), 6);
    expect_refused(plan({}), 2, "plan: --ranks or --nodes: expected a number, got none");
}

TEST(Plan, ComparesTheMemoryOfACpuMachineWithThatOfTheFullestNode) {
    const TemporaryFolder folder;
    const std::string machine = (folder / "cpu.yaml").string();
    const Outcome node = plan({"--nodes", "1", "--ranks-per-node", "4", "--set",
                               "bagging.P_degree=1", "--set", "training.batch_size=8", "--json"});
    const double bytes =
        nlohmann::json::parse(node.out)["memory_per_rank"]["fullest_node_bytes"].get<double>();
    std::ofstream(machine) << fmt::format("device: {{fp32_training_tflops: 1, memory_gb: {}}}\n",
                                          (bytes - 1024 * 1024) / 1e9);
    const auto warning_of_sweep = [&](const std::string& ranks) {
        return plan({"--sweep", ranks, "--machine", machine, "--set", "bagging.P_degree=4", "--set",
                     "training.batch_size=32"})
            .error;
    };
    EXPECT_EQ(warning_of_sweep("ranks=1..8"),
              fmt::format("the memory of --machine is too small by 1.00 MiB: a node needs {}\n",
                          format_bytes(static_cast<std::uint64_t>(bytes))));
    EXPECT_EQ(warning_of_sweep("ranks=1..3"), "") << "such a node has three ranks";
}

TEST(Plan, CountsTheTrainingFolder) {
    const TemporaryFolder folder;
    const Outcome made =
        run_in(folder.path(),
               {"data", "generate", "photographs", "--output", "quickstart-data", "--classes", "2",
                "--training-per-class", "40", "--validation-per-class", "1", "--size", "16"});
    ASSERT_EQ(made.exit_code, 0) << made.error;
    const Outcome outcome = run_in(
        folder.path(), {"plan", "--config", source("configs/quickstart.yaml"), "--ranks", "4"});
    EXPECT_EQ(outcome.exit_code, 0) << outcome.error;
    EXPECT_NE(outcome.out.find(" 80 samples"), std::string::npos) << outcome.out;
}

TEST(Plan, HasTheRanksOfTheConfigurationByDefault) {
    const auto mini = [](const std::vector<std::string>& more) {
        std::vector<std::string> words{"plan", "--config",
                                       source("configs/mini_image_classification.yaml")};
        words.insert(words.end(), more.begin(), more.end());
        return run(words);
    };
    const Outcome outcome = mini({"--set", "bagging.M=3", "--json"});
    ASSERT_EQ(outcome.exit_code, 0) << outcome.error;
    EXPECT_EQ(nlohmann::json::parse(outcome.out)["layout"]["ranks"], 3);
    for (const char* automatic : {"bagging.M=auto", "bagging.P_degree=auto"})
        expect_refused(mini({"--set", automatic}), 2,
                       "else M x P_degree, but M or P_degree is auto");
    expect_refused(mini({"--set", "bagging.M=1000000000"}), 2,
                   "--ranks: expected 1 to 10000000, got 10000001");
}

TEST(Plan, RejectsALayoutThatBreaksEquation5) {
    expect_refused(
        run({"plan", "--config", source("configs/quickstart.yaml"), "--ranks", "3"}), 3,
        "bagging.M=2 x bagging.P_degree=2 needs 4 ranks (eq. 5), got 3; use `--ranks 4`");
}

/// Errors that depend on the configuration alone have the text of a run's error (tests/end_to_end).
TEST(Plan, RejectsWhatARunRejects) {
    struct Case {
        int ranks;
        std::vector<std::string> changes;
        std::string words;
    };
    const std::vector<std::string> parts{"bagging.M=1", "bagging.P_degree=auto",
                                         "parallel.mode=model", "training.batch_size=120"};
    const auto with = [](std::vector<std::string> changes, const std::vector<std::string>& more) {
        changes.insert(changes.end(), more.begin(), more.end());
        return changes;
    };
    for (const auto& [ranks, changes, words] : std::vector<Case>{
             {4,
              {"device.kind=cpu", "training.precision=mixed"},
              "training.precision: expected auto, fp32, bf16 or int8, as device.kind is cpu (GPUs "
              "have tf32, fp16 and mixed), got 'mixed'"},
             {4,
              {"device.kind=cpu", "communication.backend=nccl"},
              "communication.backend: expected auto or mpi, as device.kind is cpu, got 'nccl'"},
             {4,
              {"communication.backend=nccl", "training.batch_norm_samples=32"},
              "communication.backend: expected auto or mpi, as training.batch_norm_samples spans"},
             {3, with(parts, {"training.precision=int8"}), "1 stage x 3 shards have none, got 3"},
             {4, with(parts, {"device.kind=cuda"}),
              "parallel.model_degree: expected 1, as device.kind cuda does not support shards of "
              "layers yet, got 4 "
              "(auto)"},
             {4,
              {"workload.image_size=32", "training.batch_norm_samples=1"},
              "training.batch_norm_samples: expected 2 or more, got 1: "}}) {
        std::vector<std::string> arguments{"plan", "--config", source("configs/quickstart.yaml"),
                                           "--ranks", std::to_string(ranks)};
        for (const std::string& change : changes) {
            arguments.insert(arguments.end(), {"--set", change});
        }
        expect_refused(run(arguments), 2, words);
    }
}

TEST(Plan, RejectsDetectorsThatAreJudgedOutOfBag) {
    const std::vector<std::string> wrong{"--config", source("configs/extreme_weather.yaml"),
                                         "--set", "bagging.out_of_bag=true"};
    for (std::vector<std::string> command : {std::vector<std::string>{"plan", "--ranks", "8"},
                                             std::vector<std::string>{"config", "print"}}) {
        command.insert(command.end(), wrong.begin(), wrong.end());
        expect_refused(run(command), 2,
                       "bagging.out_of_bag: expected false, as workload.kind is extreme_weather, "
                       "got 'true'");
    }
}

TEST(Flops, HaveTheKnownTotals) {
    const std::vector<std::string> arguments{"flops", "--config",
                                             source("configs/imagenet_goyal.yaml")};
    const Outcome text = run(arguments);
    EXPECT_EQ(text.exit_code, 0) << text.error;
    EXPECT_NE(text.out.find("8 203 465 728"), std::string::npos) << text.out;
    auto of_v1 = arguments;
    of_v1.insert(of_v1.end(), {"--set", "workload.model=resnet50_v1", "--json"});
    const Outcome json = run(of_v1);
    EXPECT_TRUE(nlohmann::json::accept(json.out)) << json.out;
    EXPECT_NE(json.out.find("7739990016"), std::string::npos) << json.out;
}

}  // namespace
}  // namespace hpcai::cli
