// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <string>
#include <variant>

#include <gtest/gtest.h>

#include <hpcai/metrics/ledger.hpp>
#include <hpcai/models/make_model.hpp>

#include "configurations.hpp"
#include "storage/temporary_folder.hpp"

namespace hpcai::prediction {
namespace {

double step_seconds(const config::Config& config, const EstimateRequest& request) {
    const PlanRecord plan = estimate(config, request);
    EXPECT_TRUE(plan.time.step_seconds.value) << plan.time.step_seconds.reason;
    return plan.time.step_seconds.value.value_or(0);
}

TEST(StepTime, IsAMeasuredStepAgainWhereTheSetupIsTheSame) {
    EXPECT_DOUBLE_EQ(step_seconds(single(8), measured(2)), 1.0);
    EXPECT_DOUBLE_EQ(step_seconds(single(16), measured(2)), 1.8);
}

TEST(StepTime, AssumesTheMeasuredNodesUnlessTheRanksPerNodeAreGiven) {
    EstimateRequest request = measured(4);
    request.ranks_per_node.reset();
    const PlanRecord plan = estimate(single(8), request);
    EXPECT_EQ(plan.layout.nodes, 2);
    EXPECT_DOUBLE_EQ(plan.time.step_seconds.value.value_or(0), 1.0);
    config::Config wide = single(8);
    wide.bagging.degree = 4;
    EXPECT_EQ(estimate(wide, request).layout.nodes, 2) << "a group is wider than such a node";
}

TEST(StepTime, LiesOnTheLineThroughMeasuredSteps) {
    EXPECT_DOUBLE_EQ(step_seconds(single(12), measured(2)), 1.4);
    EXPECT_DOUBLE_EQ(step_seconds(single(32), measured(2)), 3.4);
    EXPECT_DOUBLE_EQ(step_seconds(single(4), measured(2)), 0.6);
}

TEST(StepTime, ReportsWhereLargerBatchesThanThoseOfThePlanWereNotMeasured) {
    EstimateRequest request = measured(2);
    request.roofline->calibration.reason = "no time was left for 32 samples";
    const auto reports = [&](int samples) {
        return std::ranges::count(
            estimate(single(samples), request).assumptions,
            "the roofline has steps of 16 samples at most (no time was left for 32 samples); "
            "for more, repeat `hpcai500 roofline` with --config, --precision fp32 --seconds 60");
    };
    EXPECT_EQ(reports(17), 1);
    EXPECT_EQ(reports(16), 0);
}

TEST(StepTime, ReportsWhereAnotherOptimizerWasMeasured) {
    const auto says_so = [](config::Optimizer optimizer) {
        config::Config config = single(8);
        config.training.optimizer = optimizer;
        EstimateRequest request = measured(2);
        request.roofline->calibration.optimizer = "sgd";
        return std::ranges::any_of(
            estimate(config, request).assumptions, [](const std::string& text) {
                return text == "steps were measured with sgd; those with lamb take as long";
            });
    };
    EXPECT_TRUE(says_so(config::Optimizer::lamb));
    EXPECT_FALSE(says_so(config::Optimizer::sgd));
}

TEST(StepTime, GrowsWhereMoreRanksShareTheCores) {
    // Two measured ranks had one core each; four ranks have half a core each.
    EXPECT_DOUBLE_EQ(step_seconds(single(8), measured(4)), 2.0);
    EXPECT_DOUBLE_EQ(step_seconds(single(8), measured(1)), 1.0) << "a thread takes one core";
    config::Config two_threads = single(8);
    two_threads.device.threads = 2;
    EXPECT_DOUBLE_EQ(step_seconds(two_threads, measured(1)), 0.5);
    EXPECT_DOUBLE_EQ(step_seconds(two_threads, measured(2)), 1.0);
}

TEST(StepTime, HasTheMeasuredExposureOfAllReduces) {
    config::Config config = single(32);
    config.bagging.degree = 2;
    const PlanRecord plan = estimate(config, measured(2));
    // The measured all-reduce of 1e8 bytes takes 0.1001 s and made the step 0.05 s longer. This one
    // is of 25 557 032 parameters.
    const double sum = 1e-4 + 4 * kParameters / 1e9;
    EXPECT_NEAR(*plan.time.communication_seconds.value, sum, 1e-4 * sum);
    EXPECT_NEAR(*plan.time.exposed_seconds.value, sum * 0.05 / 0.1001, 1e-4 * sum);
    EXPECT_DOUBLE_EQ(*plan.time.compute_seconds.value, 1.8);
    EXPECT_DOUBLE_EQ(*plan.time.step_seconds.value, 1.8 + *plan.time.exposed_seconds.value);
    config.communication.overlap = false;
    const PlanRecord plain = estimate(config, measured(2));
    EXPECT_EQ(*plain.time.exposed_seconds.value, *plain.time.communication_seconds.value);
}

TEST(StepTime, OfAllReducesBetweenNodesNeedsTheirBandwidth) {
    config::Config config = single(64);
    config.bagging.degree = 4;
    EstimateRequest request = measured(4);
    request.ranks_per_node = 2;
    const PlanRecord plan = estimate(config, request);
    EXPECT_FALSE(plan.time.step_seconds.value);
    EXPECT_NE(plan.time.step_seconds.reason.find("no all-reduces between nodes"), std::string::npos)
        << plan.time.step_seconds.reason;
}

TEST(StepTime, UsesTheLinksOfAMachineForAllReduces) {
    config::Config config = single(64);
    config.bagging.degree = 4;
    EstimateRequest request = measured(4);
    request.ranks_per_node = 2;
    request.machine = config::Machine{.within_node = config::Link{1e-3, 1e10},
                                      .between_nodes = config::Link{1e-2, 1e9},
                                      .overlapped_share = 0.0};
    const PlanRecord plan = estimate(config, request);
    // Two rounds of messages within and between two nodes. A rank sends 6/4 of the gradients; 4/4
    // leave a node, which has two ranks.
    const double bytes = 4 * kParameters;
    const double out = plan.traffic_per_rank.out_of_node_bytes_per_step;
    const double within = plan.traffic_per_rank.sent_bytes_per_step -
                          plan.traffic_per_rank.between_nodes_bytes_per_step;
    EXPECT_NEAR(out, 2 * bytes, 0.01 * bytes);
    EXPECT_NEAR(within, 0.5 * bytes, 0.01 * bytes);
    const double sums = 2 * 1e-3 + within / 1e10 + 2 * 1e-2 + out / 1e9;
    EXPECT_NEAR(*plan.time.communication_seconds.value, sums, 1e-9);
    EXPECT_NEAR(*plan.time.exposed_seconds.value, sums, 1e-9);
    request.machine->overlapped_share = 0.75;
    EXPECT_NEAR(*estimate(config, request).time.exposed_seconds.value, sums / 4, 1e-9);
}

TEST(StepTime, OfTheAllReduceOfMpiIsThatOfOpenMpi) {
    config::Config config = single(96);
    EstimateRequest request = measured(8);
    request.machine = config::Machine{.within_node = config::Link{1e-3, 1e10},
                                      .between_nodes = config::Link{1e-2, 1e9}};
    const auto seconds = [&](config::AllReduceAlgorithm algorithm, int ranks, int nodes) {
        config.bagging.degree = request.ranks = ranks;
        request.ranks_per_node = ranks / nodes;
        config.communication.algorithm = algorithm;
        return *estimate(config, request).time.communication_seconds.value;
    };
    using enum config::AllReduceAlgorithm;
    const double bytes = 4 * kParameters;
    EXPECT_DOUBLE_EQ(seconds(native, 8, 2), seconds(hierarchical, 8, 2));
    // Two of six ranks leave the sum of their values to neighbors.
    const double of_six = 9e-3 + (2.0 * 5 / 6 + 2) * bytes / 1e10;
    EXPECT_NEAR(seconds(native, 6, 1), of_six, 1e-3 * of_six);
    // Few ranks sum all values on the first, one after the other.
    const double of_three = 4e-3 + 4 * bytes / 1e10;
    EXPECT_NEAR(seconds(native, 3, 1), of_three, 1e-3 * of_three);
    const double of_two = 2e-2 + 2 * bytes / 1e9;
    EXPECT_NEAR(seconds(native, 2, 2), of_two, 1e-3 * of_two);
    request.roofline->is_gpu = true;
    EXPECT_EQ(seconds(native, 3, 1), seconds(hierarchical, 3, 1)) << "NCCL";
}

TEST(StepTime, CountsTheBubbleOfAPipelineAndItsMessages) {
    config::Config config = staged(2, 4);
    config.training.batch_size = 64;
    config.device.threads = 1;
    const PlanRecord plan = estimate(config, measured(2));
    ASSERT_TRUE(plan.time.step_seconds.value) << plan.time.step_seconds.reason;
    // 0.2 s do not grow with the samples; 4 micro-batches of 16 take 1.6 s each in addition.
    const double whole = 0.2 + 4 * 1.6;
    EXPECT_NEAR(*plan.time.compute_seconds.value,
                whole * plan.parallel.largest_stage_share / (1 - 1.0 / 5), 1e-9);
    const double messages = plan.parallel.message_bytes_per_step / 1e9 + 8 * 0.5e-4;
    EXPECT_NEAR(*plan.time.exposed_seconds.value, messages, 1e-9);
}

/// Returns the seconds of a sample in fp32 at 100 GFLOP/s for convolutions and linear layers, and
/// at 9.6 GB/s for other operations, which have two passes.
double seconds_of_operations(const config::Config& config) {
    const graph::Graph model = models::make_model(config);
    double flops = 0, bytes = 0;
    for (const graph::Node& node : model.nodes()) {
        if (std::holds_alternative<ops::Convolution>(node.operation) ||
            std::holds_alternative<ops::Linear>(node.operation)) {
            const ops::Flops all = graph::flops(model, node, ops::Ledger::two_mac);
            flops += static_cast<double>(all.forward + all.weight_gradient + all.input_gradient);
            continue;
        }
        for (const ops::Pass pass : {ops::Pass::forward, ops::Pass::input_gradient}) {
            bytes += metrics::moved_bytes(model, node, pass, tensor::DType::f32);
        }
    }
    return flops / 1e11 + bytes / 9.6e9;
}

TEST(StepTime, IsThatOfOperationsWhereNoStepOfTheModelWasMeasured) {
    config::Config config = single(8);
    config.workload.image_size = 64;
    EstimateRequest request = measured(2);
    const auto rate = [&](const char* kind, const char* pass) {
        request.roofline->operations.push_back({.name = "x",
                                                .operation = kind,
                                                .precision = "fp32",
                                                .pass = pass,
                                                .shape = "",
                                                .of_model = true,
                                                .nodes = 1,
                                                .flops = 1,
                                                .bytes = 1,
                                                .seconds = {1e-11, ""},
                                                .flops_per_second = {1e11, ""}});
    };
    request.roofline->operations.clear();
    EXPECT_NE(storage::error_of(ExitCode::data, [&] { estimate(config, request); })
                  .find("measure with the same --config"),
              std::string::npos);
    for (const char* pass : {"forward", "weight_gradient", "input_gradient"}) {
        rate("convolution", pass);
        rate("linear", pass);
    }
    const double at_8 = step_seconds(config, request);
    // At 100 GFLOP/s, convolutions alone take 8 x 3 x 0.67 GFLOPs / 100 GFLOP/s.
    EXPECT_GT(at_8, 8 * 3 * 0.65e9 / 1e11);
    const double expected = 8 * seconds_of_operations(config);
    EXPECT_NEAR(at_8, expected, 1e-9 * expected);
    config.training.batch_size = 16;
    EXPECT_DOUBLE_EQ(step_seconds(config, request), 2 * at_8);
}

TEST(StepTime, RejectsTwoRates) {
    EstimateRequest request = measured(1);
    request.flops_per_rank = 1e12;
    EXPECT_EQ(refusal(single(8), request), ExitCode::usage);
}

EstimateRequest on_gpus(const config::Config& config, std::map<std::string, double> device) {
    EstimateRequest request{.ranks = 8, .ranks_per_node = 8};
    device["gpus_per_node"] = 8;
    request.machine = config::Machine{.name = "A GPU",
                                      .figures = {"device: name A GPU"},
                                      .device = std::move(device),
                                      .within_node = config::Link{1e-6, 1e11}};
    set_machine_rates(config, request);
    return request;
}

TEST(StepTime, IsThatOfTheTrainingRateOfAMachine) {
    config::Config config = single(100);
    config.device.kind = config::DeviceKind::cuda;
    config.training.precision = config::Precision::automatic;
    const double flops = 24'610'397'184;
    const std::map<std::string, double> device{{"mixed_training_tflops", flops * 1000}};
    EXPECT_NEAR(step_seconds(config, on_gpus(config, device)), 0.1, 1e-12);
    const PlanRecord plan = estimate(config, on_gpus(config, device));
    EXPECT_EQ(plan.time.source, "predicted from the training rate of A GPU in mixed");
    EXPECT_TRUE(std::ranges::count(plan.assumptions, "device: name A GPU"));
    config.bagging.degree = 8;
    config.training.batch_size = 800;
    EXPECT_GT(step_seconds(config, on_gpus(config, device)), 0.1) << "with an all-reduce";
}

TEST(StepTime, OfAMachineInAnotherPrecisionIsThatOfItsPeaks) {
    config::Config config = single(8);
    config.training.precision = config::Precision::fp32;
    const EstimateRequest request = on_gpus(
        config,
        {{"mixed_training_tflops", 1e15}, {"fp32_tflops", 1e11}, {"memory_gb_per_second", 9.6e9}});
    EXPECT_NEAR(step_seconds(config, request), 8 * seconds_of_operations(config), 1e-6);
    EXPECT_FALSE(on_gpus(config, {{"mixed_training_tflops", 1e15}}).roofline);
}

TEST(StepTime, NeedsNoLinkWithinNodesOfOneRank) {
    config::Config config = single(8);
    config.bagging.degree = 8;
    config.training.batch_size = 64;
    EstimateRequest request{.ranks = 8, .ranks_per_node = 1, .images_per_second = 80};
    request.machine = config::Machine{.between_nodes = config::Link{1e-6, 1e11}};
    set_machine_rates(config, request);
    EXPECT_GT(step_seconds(config, request), 0.1) << "with an all-reduce";
    request.ranks_per_node = 2;
    EXPECT_FALSE(estimate(config, request).time.step_seconds.value);
}

TEST(StepTime, HasTheGivenRateOfAMachineAndItsLinks) {
    const config::Config config = single(8);
    EstimateRequest request{.ranks = 8, .ranks_per_node = 8, .images_per_second = 80};
    request.machine = config::Machine{.device = {{"fp32_training_tflops", 1e15}}};
    set_machine_rates(config, request);
    EXPECT_NEAR(step_seconds(config, request), 0.1, 1e-12);
}

}  // namespace
}  // namespace hpcai::prediction
