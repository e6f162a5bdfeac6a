// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>
#include <sstream>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <hpcai/base/clock.hpp>
#include <hpcai/base/error.hpp>
#include <hpcai/records/json.hpp>

#include "configurations.hpp"
#include "support/example_roofline.hpp"

namespace hpcai::prediction {
namespace {

constexpr double kImageNet = 1'281'167;

config::Config small() {
    config::Config config = official();
    config.workload.classes = 10;
    config.workload.image_size = 32;
    config.workload.epochs = 2;
    config.training.batch_size = 16;
    return config;
}

bool assumes(const PlanRecord& estimate, const std::string& words) {
    for (const std::string& assumption : estimate.assumptions) {
        if (assumption.find(words) != std::string::npos) return true;
    }
    return false;
}

TEST(Estimate, LaysOutGroupsByNode) {
    const PlanRecord plan = estimate(official(), {.ranks = 64, .ranks_per_node = 8});
    EXPECT_EQ(plan.layout.groups, 8);
    EXPECT_EQ(plan.layout.degree, 8);
    EXPECT_EQ(plan.layout.groups_on_one_node, 8);
    EXPECT_EQ(plan.layout.map.back(), "group 7: node7[0-7]");
}

TEST(Estimate, AssumesAGroupPerNodeIfNothingIsKnownOfNodes) {
    config::Config config = official();
    config.bagging.degree = 4;
    const PlanRecord plan = estimate(config, {.ranks = 12});
    EXPECT_EQ(plan.layout.nodes, 3);
    EXPECT_TRUE(assumes(plan, "nodes of 4 ranks"));
    EXPECT_FALSE(assumes(estimate(config, {.ranks = 12, .ranks_per_node = 4}), "nodes of"));
}

TEST(Estimate, RejectsALayoutThatBreaksEquation5) {
    config::Config config = official();
    config.bagging.groups = 2;
    config.bagging.degree = 3;
    EXPECT_EQ(refusal(config, {.ranks = 8}), ExitCode::launch);
    EXPECT_EQ(refusal(config, {.ranks = 6}), ExitCode::usage) << "a batch of 256 on 3 ranks";
    config.training.batch_size = 255;
    EXPECT_EQ(refusal(config, {.ranks = 6}), ExitCode::ok);
}

TEST(Estimate, RejectsNumbersOutOfRange) {
    const config::Config config = official();
    EXPECT_EQ(refusal(config, {.ranks = 0}), ExitCode::usage);
    EXPECT_EQ(refusal(config, {.ranks = std::numeric_limits<int>::max()}), ExitCode::usage);
    EXPECT_EQ(refusal(config, {.ranks = 1, .ranks_per_node = 0}), ExitCode::usage);
    EXPECT_EQ(refusal(config, {.ranks = 1, .samples = 0}), ExitCode::usage);
}

TEST(Estimate, CountsTheWorkOfTheOfficialWorkload) {
    const PlanRecord plan = estimate(official(), {.ranks = 64, .ranks_per_node = 8});
    EXPECT_EQ(plan.data.samples.value, kImageNet);
    EXPECT_TRUE(assumes(plan, "1 281 167"));
    EXPECT_EQ(plan.data.steps_per_epoch.value, 5004) << "the last 143 samples fill no batch";
    EXPECT_EQ(plan.data.steps_per_run.value, 90 * 5004);
    EXPECT_EQ(plan.work.model_flops.step, 256 * kTrainingFlops);
    EXPECT_EQ(plan.work.model_flops.epoch.value, 5004 * 256 * kTrainingFlops);
    EXPECT_DOUBLE_EQ(plan.work.model_flops.run.value.value(), 90.0 * 5004 * 256 * kTrainingFlops);
    EXPECT_EQ(plan.work.ledgers[0].convention, "table3");
    EXPECT_EQ(plan.work.ledgers[1].forward_per_sample, 8'178'368'512);
}

TEST(Estimate, DistinguishesV1FromV15) {
    config::Config config = official();
    config.workload.model = config::Model::resnet50_v1;
    EXPECT_EQ(estimate(config, {}).work.model_flops.step, 256 * 3 * 7'739'990'016.0);
}

TEST(Estimate, TakesTheSizeOfTheDataFromWhereItIsKnown) {
    EXPECT_EQ(estimate(official(), {.samples = 1000}).data.samples.value, 1000);
    EXPECT_FALSE(assumes(estimate(official(), {.samples = 1000}), "ImageNet"));
    config::Config synthetic = official();
    synthetic.data.kind = config::DataKind::synthetic;
    const PlanRecord plan = estimate(synthetic, {});
    EXPECT_EQ(plan.data.samples.value, synthetic.data.synthetic_samples);
    EXPECT_EQ(plan.data.source, "data.synthetic_samples");
    synthetic.data.kind = config::DataKind::climate_synthetic;
    EXPECT_EQ(estimate(synthetic, {}).data.samples.value, synthetic.data.synthetic_samples);
}

TEST(Estimate, HasNoSizeOfOtherData) {
    for (auto change : {+[](config::WorkloadConfig& workload) { workload.classes = 21; },
                        +[](config::WorkloadConfig& workload) { workload.image_size = 128; },
                        +[](config::WorkloadConfig& workload) { workload.backbone_width = 32; },
                        +[](config::WorkloadConfig& workload) { workload.epochs = 10; },
                        +[](config::WorkloadConfig& workload) { workload.target_quality = 0.7; }}) {
        config::Config config = official();
        change(config.workload);
        const PlanRecord plan = estimate(config, {.flops_per_rank = 1e12, .watts_per_rank = 100});
        EXPECT_FALSE(plan.data.samples.value);
        for (const Quantity& unknown :
             {plan.data.samples, plan.data.samples_per_epoch, plan.data.steps_per_epoch,
              plan.work.model_flops.epoch, plan.work.model_flops.run,
              plan.traffic_per_rank.sent_bytes_per_run, plan.time.run_seconds,
              plan.energy.joules}) {
            EXPECT_FALSE(unknown.value);
            EXPECT_NE(unknown.reason.find("samples"), std::string::npos) << unknown.reason;
        }
        EXPECT_TRUE(plan.time.step_seconds.value) << "a step needs no data set";
    }
}

TEST(Estimate, CountsWhatEachSamplerDraws) {
    config::Config config = small();
    const auto drawn = [&](config::Sampler sampler) {
        config.bagging.sampler = sampler;
        return estimate(config, {.samples = 1000}).data.samples_per_epoch.value.value();
    };
    EXPECT_EQ(drawn(config::Sampler::none), 1000);
    EXPECT_EQ(drawn(config::Sampler::bootstrap), 1000);
    EXPECT_EQ(drawn(config::Sampler::poisson), 1000);
    EXPECT_EQ(drawn(config::Sampler::subsample), 632);
    config.bagging.sampler = config::Sampler::poisson;
    EXPECT_TRUE(assumes(estimate(config, {.samples = 1000}), "Poisson"));
    config.bagging.sampler = config::Sampler::bootstrap;
    EXPECT_FALSE(assumes(estimate(config, {.samples = 1000}), "Poisson"));
}

TEST(Estimate, ReportsWhenAnEpochHasNoStep) {
    const PlanRecord plan = estimate(small(), {.samples = 15});
    EXPECT_EQ(plan.data.steps_per_epoch.value, 0);
    EXPECT_EQ(plan.work.model_flops.run.value, 0);
    EXPECT_TRUE(assumes(plan, "no step at all"));
}

TEST(Estimate, CountsGradientTrafficOfAnIdealAllReduce) {
    config::Config config = official();
    config.bagging.degree = 8;
    const PlanRecord plan = estimate(config, {.ranks = 64});
    EXPECT_EQ(plan.traffic_per_rank.gradient_bytes, 4 * kParameters);
    EXPECT_DOUBLE_EQ(plan.traffic_per_rank.sent_bytes_per_step, 2.0 * 7 / 8 * 4 * kParameters);
    EXPECT_DOUBLE_EQ(plan.traffic_per_rank.sent_bytes_per_run.value.value(),
                     plan.traffic_per_rank.sent_bytes_per_step * 90 * 5004);
    config.bagging.degree = 1;
    EXPECT_EQ(estimate(config, {.ranks = 64}).traffic_per_rank.sent_bytes_per_step, 0)
        << "a group of one rank has no all-reduce";
}

TEST(Estimate, CountsWhatEachAllReduceSendsBetweenNodesOfTwoRanks) {
    using config::AllReduceAlgorithm;
    struct Case {
        AllReduceAlgorithm algorithm;
        double sent, between_nodes;  // shares of the encoded gradients, of one rank
    };
    config::Config config = official();
    config.bagging.degree = 8;
    config.communication.precision = config::CommunicationPrecision::int8;
    const double bytes = (1 + 4.0 / 256) * kParameters;
    for (const Case& one : {Case{AllReduceAlgorithm::all_reduce, 1.75, 2 * 6.0 / 8},
                            // Rows of four ranks have two nodes each; columns of two join the rows.
                            Case{AllReduceAlgorithm::torus_2d, 1.75, 2 * 2.0 / 4 + 2 * 0.5 / 4},
                            Case{AllReduceAlgorithm::hierarchical, 1.75, 2 * 0.75 / 2}}) {
        config.communication.algorithm = one.algorithm;
        const PlanRecord plan = estimate(config, {.ranks = 8, .ranks_per_node = 2});
        EXPECT_NEAR(plan.traffic_per_rank.sent_bytes_per_step / bytes, one.sent, 1e-4);
        EXPECT_NEAR(plan.traffic_per_rank.between_nodes_bytes_per_step / bytes, one.between_nodes,
                    1e-4);
        EXPECT_NEAR(plan.traffic_per_rank.out_of_node_bytes_per_step / bytes, 2 * one.between_nodes,
                    1e-4);
        // Residuals, and messages in flight.
        EXPECT_GT(plan.memory_per_rank.exchange_bytes, 4 * kParameters + bytes);
        EXPECT_LT(plan.memory_per_rank.exchange_bytes, 4 * kParameters + 2.5 * bytes);
    }
}

TEST(Estimate, CountsBatchNormStatisticsOverRanks) {
    config::Config config = official();
    config.bagging.degree = 8;
    const PlanRecord apart = estimate(config, {.ranks = 64, .ranks_per_node = 2});
    EXPECT_EQ(apart.traffic_per_rank.statistics_ranks, 1);
    EXPECT_EQ(apart.traffic_per_rank.statistics_bytes_per_step, 0);
    config.training.batch_norm_samples = config.training.batch_size / 2;
    const PlanRecord plan = estimate(config, {.ranks = 64, .ranks_per_node = 2});
    const double payload = 2 * 2 * 8 * 26560;  // two doubles per channel and pass
    EXPECT_EQ(plan.traffic_per_rank.statistics_ranks, 4);
    EXPECT_EQ(plan.traffic_per_rank.statistics_bytes_per_step, payload);
    EXPECT_DOUBLE_EQ(plan.traffic_per_rank.sent_bytes_per_step,
                     apart.traffic_per_rank.sent_bytes_per_step + 2 * payload);
    EXPECT_DOUBLE_EQ(plan.traffic_per_rank.between_nodes_bytes_per_step,
                     apart.traffic_per_rank.between_nodes_bytes_per_step + payload);
    EXPECT_DOUBLE_EQ(plan.traffic_per_rank.out_of_node_bytes_per_step,
                     apart.traffic_per_rank.out_of_node_bytes_per_step + 2 * payload);
    EXPECT_NE(to_text(plan).find("fp64, over 4 ranks"), std::string::npos);
}

TEST(Estimate, GivesTrialsPerHourOfASearch) {
    config::Config config = small();
    EXPECT_FALSE(estimate(config, {.samples = 200}).search);
    config.workload.kind = config::WorkloadKind::architecture_search;
    config.bagging.groups = 3;
    config.bagging.sampler = config::Sampler::none;
    config.search.epochs = {1, 2};
    config.search.hold_out = 0.2;
    const PlanRecord plan = estimate(config, {.ranks = 3, .samples = 200, .flops_per_rank = 1e9});
    const LedgerRecord& ledger = plan.work.ledgers.front();
    const double trial = 2 * (160 * static_cast<double>(ledger.training_per_sample) +
                              40 * static_cast<double>(ledger.forward_per_sample));
    EXPECT_EQ(plan.search->epochs, 2);
    EXPECT_NEAR(plan.search->trial_seconds.value.value(), trial / 1e9, 1e-9 * trial / 1e9);
    EXPECT_NEAR(plan.search->trials_per_hour.value.value(), 3 * 3600 * 1e9 / trial,
                1e-9 * 3 * 3600 * 1e9 / trial);
    const std::string text = to_text(plan);
    EXPECT_NE(text.find("\n  trials per hour "), std::string::npos) << text;
    EXPECT_NE(text.find("\n  trial           "), std::string::npos) << text;
    EXPECT_NE(text.find(", 2 epochs\n"), std::string::npos) << text;
    config.search.trials = 3;
    const auto seconds_of_run = [&] {
        return estimate(config, {.ranks = 3, .samples = 200, .flops_per_rank = 1e9})
            .time.run_seconds.value.value();
    };
    EXPECT_NEAR(seconds_of_run(), 2.5 * trial / 1e9, 1e-9 * trial / 1e9) << "1 + 2 + 2 epochs";
    config.search.duration_seconds = 1e9;
    EXPECT_NEAR(seconds_of_run(), 2.5 * trial / 1e9, 1e-9 * trial / 1e9);
    config.search.duration_seconds = trial / 1e9;
    EXPECT_EQ(seconds_of_run(), config.search.duration_seconds);
    config.search.trials = 0;
    EXPECT_EQ(seconds_of_run(), config.search.duration_seconds);
    const PlanRecord unknown = estimate(config, {.ranks = 3, .flops_per_rank = 1e9});
    config.run.level = config::Level::aiperf;
    EXPECT_EQ(estimate(config, {.ranks = 3}).data.samples.value, 1'281'167);
    EXPECT_NE(unknown.search->trials_per_hour.reason.find("--samples"), std::string::npos);
}

TEST(Estimate, GivesTimeAndEnergyOnlyForGivenRates) {
    const PlanRecord unknown = estimate(small(), {.samples = 160});
    EXPECT_FALSE(unknown.time.step_seconds.value);
    EXPECT_NE(unknown.time.run_seconds.reason.find("--flops-per-rank"), std::string::npos);
    EXPECT_NE(unknown.energy.joules.reason.find("--watts-per-rank"), std::string::npos);

    config::Config config = small();
    config.bagging.groups = 3;
    const PlanRecord known =
        estimate(config, {.ranks = 6, .samples = 160, .flops_per_rank = 1e9, .watts_per_rank = 50});
    const double step = 16 * static_cast<double>(known.work.ledgers[0].training_per_sample);
    EXPECT_DOUBLE_EQ(known.time.step_seconds.value.value(), step / (2 * 1e9));
    EXPECT_DOUBLE_EQ(known.time.epoch_seconds.value.value(), 10 * step / (2 * 1e9));
    EXPECT_DOUBLE_EQ(known.time.run_seconds.value.value(), 2 * 10 * step / (2 * 1e9));
    EXPECT_DOUBLE_EQ(known.energy.joules.value.value(),
                     6 * 50 * known.time.run_seconds.value.value());

    const PlanRecord no_rate = estimate(small(), {.samples = 160, .watts_per_rank = 50});
    EXPECT_FALSE(no_rate.energy.joules.value);
    EXPECT_NE(no_rate.energy.joules.reason.find("--flops-per-rank"), std::string::npos);
}

TEST(Estimate, Of100000RanksTakesUnderTwoSeconds) {
    const Stopwatch watch;
    const PlanRecord plan = estimate(official(), {.ranks = 100'000, .ranks_per_node = 8});
    const std::size_t characters = to_text(plan).size() + records::to_json(plan).size();
    EXPECT_LT(watch.seconds(), 2);
    EXPECT_EQ(plan.layout.groups, 12'500);
    EXPECT_LT(characters, 10'000u) << "the map is compressed";
}

TEST(EstimateText, HasLinesOf80Columns) {
    const PlanRecord plan = estimate(official(), {.ranks = 64, .ranks_per_node = 8});
    std::istringstream text(to_text(plan));
    for (std::string line; std::getline(text, line);) EXPECT_LE(line.size(), 80U) << line;
}

TEST(EstimateText, ShowsEverySectionAndNoUnknownNumber) {
    const std::string text = to_text(estimate(small(), {.ranks = 4, .ranks_per_node = 4}));
    for (const char* words :
         {"4 ranks = M 1 x P_degree 4", "group 0: node0[0-3]", "work of one model, by table3",
          "two_mac", "aiperf", "memory of one rank", "traffic of one rank",
          "unknown: no rate was given (--roofline,",
          "unknown: the number of training samples is unknown;"}) {
        EXPECT_NE(text.find(words), std::string::npos) << words << "\n" << text;
    }
    EXPECT_EQ(text.find("nan"), std::string::npos) << text;
    EXPECT_EQ(text.find(" \n"), std::string::npos) << "blanks at the end of a line";
}

TEST(EstimateText, BeginsWithTheTimeAndTheSpeedOfAllModels) {
    EstimateRequest request{.ranks = 4, .ranks_per_node = 4, .samples = 160};
    request.images_per_second = 10;
    const std::string text = to_text(estimate(small(), request));
    EXPECT_LT(text.find("time, "), text.find("layout\n")) << text;
    EXPECT_NE(text.find("FLOPS, 40 samples/s\n"), std::string::npos) << text;
}

TEST(EstimateText, CountsOneThingAsOne) {
    config::Config config = small();
    config.bagging.groups = 1;
    config.workload.epochs = 1;
    const std::string text = to_text(estimate(config, {.ranks = 1, .samples = 16}));
    for (const char* words :
         {"1 rank = M 1 x P_degree 1", "1 of 1 group; the widest spans 1 node\n", "1 step of 16",
          "1 epoch, 1 step\n", "1 rank\n", "nodes of 1 rank,"}) {
        EXPECT_NE(text.find(words), std::string::npos) << words << "\n" << text;
    }
}

TEST(EstimateJson, HasNumbersOrNullWithAReason) {
    const PlanRecord plan = estimate(small(), {.ranks = 4, .ranks_per_node = 4, .samples = 160});
    const auto json = nlohmann::json::parse(records::to_json(plan));
    EXPECT_EQ(json["schema"], "hpcai500-plan/2");
    EXPECT_EQ(json["layout"]["degree"], 4);
    EXPECT_EQ(json["layout"]["map"][1], "group 0: node0[0-3]");
    EXPECT_EQ(json["data"]["steps_per_run"], 20);
    EXPECT_TRUE(json["data"]["steps_per_run"].is_number_integer());
    EXPECT_EQ(json["work"]["model_flops"]["run"], 20 * plan.work.model_flops.step);
    EXPECT_EQ(json["memory_per_rank"]["total_bytes"], plan.memory_per_rank.total_bytes);
    EXPECT_TRUE(json["time"]["run_seconds"].is_null());
    EXPECT_EQ(json["time"]["run_seconds_reason"], plan.time.run_seconds.reason);
    EXPECT_FALSE(json["data"].contains("samples_reason"));
}

TEST(EstimateJson, CountsTheEnsembleAsMModels) {
    config::Config config = small();
    config.bagging.groups = 3;
    const auto json =
        nlohmann::json::parse(records::to_json(estimate(config, {.ranks = 3, .samples = 160})));
    const auto& work = json["work"];
    EXPECT_EQ(work["ensemble_flops"]["step"], 3 * work["model_flops"]["step"].get<double>());
    EXPECT_EQ(work["ensemble_flops"]["run"], 3 * work["model_flops"]["run"].get<double>());
}

TEST(Estimate, CallsNothingExposedWhereStepsGrowByMoreThanTheirAllReduces) {
    config::Config config = official();
    config.bagging.degree = 2;
    config.training.batch_size = 32;
    config.device.threads = 1;
    EstimateRequest request{.ranks = 2, .ranks_per_node = 2};
    request.roofline = example_roofline();
    CalibrationPoint& point = request.roofline->calibration.points.back();
    EXPECT_NE(to_text(estimate(config, request)).find(" of that exposed\n"), std::string::npos);
    point.summed_step_seconds.value = point.step_seconds + 0.2002;  // twice the measured all-reduce
    const PlanRecord plan = estimate(config, request);
    EXPECT_NE(to_text(plan).find(" alone; it lengthens a step by "), std::string::npos);
    EXPECT_EQ(std::ranges::count(plan.assumptions,
                                 "all-reduces lengthen a step by 2.00 x their time alone, as "
                                 "measured"),
              1);
}

}  // namespace
}  // namespace hpcai::prediction
