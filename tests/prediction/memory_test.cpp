// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <hpcai/device/cpu_device.hpp>
#include <hpcai/graph/network.hpp>
#include <hpcai/models/make_model.hpp>
#include <hpcai/prediction/estimate.hpp>

namespace hpcai::prediction {
namespace {

config::Config small_classifier() {
    config::Config config;
    config.workload.classes = 10;
    config.workload.image_size = 64;
    config.training.batch_size = 8;
    config.training.precision = config::Precision::fp32;
    return config;
}

PlanMemoryRecord memory_of(const config::Config& config, int ranks = 1) {
    return estimate(config, {.ranks = ranks}).memory_per_rank;
}

/// Returns the memory that the CPU engine plans for values, gradients and scratch of a training
/// step.
double arena_bytes(const config::Config& config) {
    const auto device = device::make_cpu_device({.threads = 1});
    const graph::Graph graph = models::make_model(config, {.batch = config.training.batch_size});
    graph::ParameterStore store(graph, *device);
    const graph::Network network(graph::fuse(graph), *device, store,
                                 {device::Mode::training, tensor::DType::f32});
    return static_cast<double>(network.memory().arena_bytes);
}

TEST(Memory, IsWhatTheCpuEnginePlansUpToScratchOfAQuarter) {
    for (const bool fusion : {false, true}) {
        config::Config config = small_classifier();
        config.training.batch_size = 32;  // reduces the share of scratch of one sample's size
        config.training.fusion = fusion;
        const auto device = device::make_cpu_device({.threads = 1});
        const graph::Graph graph =
            models::make_model(config, {.batch = config.training.batch_size});
        graph::ParameterStore store(graph, *device);
        const graph::Network network(fusion ? graph::fuse(graph) : graph, *device, store,
                                     {device::Mode::training, tensor::DType::f32});
        const PlanMemoryRecord estimated = memory_of(config);
        const auto arena = static_cast<double>(network.memory().arena_bytes);
        EXPECT_LT(estimated.activation_bytes, arena) << "fusion " << fusion;
        EXPECT_GT(1.25 * estimated.activation_bytes, arena) << "fusion " << fusion;
        // A device may keep one copy for both directions, or none if it reads the masters.
        EXPECT_LT(static_cast<double>(network.memory().prepared_bytes),
                  1.05 * estimated.working_copy_bytes);
    }
}

TEST(Memory, OfParametersIsFourBytesEachThreeTimes) {
    const PlanMemoryRecord memory = memory_of(small_classifier());
    // With 1000 classes, the model has 25 557 032 parameters; with ten, 990 x 2049 fewer.
    EXPECT_EQ(memory.parameter_bytes, 4.0 * (25'557'032 - 990 * 2049));
    EXPECT_EQ(memory.gradient_bytes, memory.parameter_bytes);
    EXPECT_EQ(memory.optimizer_bytes, memory.parameter_bytes);
    EXPECT_EQ(memory.statistics_bytes, 2 * 4 * 26'560) << "channels of all 53 normalizations";
}

TEST(Memory, OfActivationsGrowsWithTheShareOfTheBatch) {
    config::Config config = small_classifier();
    const double whole = memory_of(config).activation_bytes;
    config.bagging.groups = 1;
    EXPECT_DOUBLE_EQ(memory_of(config, 4).activation_bytes, whole / 4);
    config.training.batch_size *= 4;
    EXPECT_DOUBLE_EQ(memory_of(config, 4).activation_bytes, whole);
}

TEST(Memory, OfActivationsAndWorkingCopiesHalvesInBf16) {
    config::Config config = small_classifier();
    const PlanMemoryRecord fp32 = memory_of(config);
    config.training.precision = config::Precision::bf16;
    const PlanMemoryRecord bf16 = memory_of(config);
    EXPECT_EQ(bf16.precision, "bf16");
    EXPECT_DOUBLE_EQ(bf16.working_copy_bytes, fp32.working_copy_bytes / 2);
    EXPECT_NEAR(bf16.activation_bytes / fp32.activation_bytes, 0.5, 0.02);
    EXPECT_EQ(bf16.parameter_bytes, fp32.parameter_bytes) << "masters stay fp32";
}

// ResNet-50 has 23 454 912 filter weights, 9 408 of them the stem's; the input gradients of 6
// strided convolutions, of 3 x 3 of 128, 256 and 512 channels and of the shortcuts, stay in fp32.
TEST(Memory, OfWorkingCopiesIsAByteEachWhereInt8Multiplies) {
    config::Config config = small_classifier();
    const PlanMemoryRecord fp32 = memory_of(config);
    config.training.precision = config::Precision::int8;
    const PlanMemoryRecord int8 = memory_of(config);
    const double filters = 23'454'912, stem = 9'408, weights = 10 * 2048;
    const double strided =
        9 * (128 * 128 + 256 * 256 + 512 * 512) + 256 * 512 + 512 * 1024 + 1024 * 2048;
    EXPECT_EQ(int8.precision, "int8");
    EXPECT_EQ(int8.working_copy_bytes, 2 * (filters - stem) + 3 * strided + 8 * (stem + weights));
    EXPECT_EQ(int8.activation_bytes, fp32.activation_bytes);
    EXPECT_EQ(int8.evaluation_bytes, fp32.evaluation_bytes);
}

TEST(Memory, TakesTheLargerFormatWhenPrecisionIsAuto) {
    config::Config config = small_classifier();
    config.training.precision = config::Precision::automatic;
    const PlanRecord plan = estimate(config, {});
    EXPECT_EQ(plan.memory_per_rank.precision, "fp32");
    EXPECT_EQ(plan.memory_per_rank.total_bytes, memory_of(small_classifier()).total_bytes);
    ASSERT_FALSE(plan.assumptions.empty());
    EXPECT_NE(plan.assumptions.back().find("training.precision is auto"), std::string::npos);
}

config::Config small_detector() {
    config::Config config = small_classifier();
    config.workload.kind = config::WorkloadKind::object_detection;
    config.workload.model = config::Model::faster_rcnn_r50_fpn;
    config.workload.classes = 3;
    config.training.batch_size = 2;
    return config;
}

/// Returns a size at which scratch is a small share.
config::Config larger_detector() {
    config::Config config = small_detector();
    config.workload.image_size = 192;
    config.detector.pyramid_channels = 96;
    config.detector.head_features = 256;
    config.detector.region_samples = 64;
    config.detector.training_proposals = 256;
    config.training.batch_size = 4;
    return config;
}

TEST(Memory, OfADetectorIsWhatTheCpuEnginePlansButForTransientGradients) {
    struct Row {
        config::Normalization normalization;
        int trained_stages;
        double least;  // smallest share of the arena; low if as many values are not kept
    };
    for (const Row& row : {Row{config::Normalization::batch, 5, 0.9},
                           Row{config::Normalization::frozen_batch, 5, 0.85},
                           Row{config::Normalization::frozen_batch, 3, 0.8},
                           Row{config::Normalization::frozen_batch, 0, 0.65}}) {
        config::Config config = larger_detector();
        config.detector.normalization = row.normalization;
        config.detector.trained_stages = row.trained_stages;
        const double part = memory_of(config).activation_bytes / arena_bytes(config);
        EXPECT_LT(part, 1) << row.trained_stages;
        EXPECT_GT(part, row.least) << row.trained_stages;
    }
}

TEST(Memory, OfADetectorsRegionsIsTheirFeaturesLossesAndSamples) {
    config::Config config = small_detector();
    const double many = memory_of(config).activation_bytes;
    config.detector.region_samples /= 2;
    const double fewer = memory_of(config).activation_bytes;
    const int features = 7 * 7 * config.detector.pyramid_channels;
    const int of_heads = 2 * config.detector.head_features + 5 * (config.workload.classes + 1);
    constexpr int kTargets = 9, kSampleBytes = 4 + 2 * 14 * 16;
    EXPECT_EQ(many - fewer, 2.0 * config.detector.region_samples *
                                (4 * (features + of_heads + kTargets) + kSampleBytes));
}

TEST(Memory, OfEvaluationIsWhatTheCpuEnginePlansUpToAFifth) {
    for (const bool detects : {false, true}) {
        const config::Config config = detects ? small_detector() : small_classifier();
        const auto device = device::make_cpu_device({.threads = 1});
        const graph::Graph trained = models::make_model(config, {.batch = 2});
        graph::ParameterStore store(trained, *device);
        const graph::Network network(
            graph::fuse(models::make_inference_model(config, {.batch = detects ? 2 : 32})), *device,
            store, {device::Mode::inference, tensor::DType::f32});
        const graph::NetworkMemory planned = network.memory();
        const auto bytes = static_cast<double>(planned.arena_bytes + planned.prepared_bytes);
        EXPECT_GT(memory_of(config).evaluation_bytes, 0.8 * bytes) << "detects " << detects;
        EXPECT_LT(memory_of(config).evaluation_bytes, 1.25 * bytes) << "detects " << detects;
    }
}

TEST(Memory, IsThatOfTrainingOrOfEvaluationWhicheverIsLarger) {
    config::Config config = small_classifier();
    config.workload.image_size = 224;
    for (const int batch : {1, 64}) {
        config.training.batch_size = batch;
        const PlanMemoryRecord memory = memory_of(config);
        const double training = memory.working_copy_bytes + memory.activation_bytes;
        EXPECT_EQ(memory.evaluation_bytes > training, batch == 1);
        EXPECT_DOUBLE_EQ(memory.total_bytes - memory.parameter_bytes - memory.gradient_bytes -
                             memory.optimizer_bytes - memory.statistics_bytes - memory.input_bytes -
                             memory.program_bytes,
                         std::max(training, memory.evaluation_bytes));
    }
}

TEST(Memory, IsThatOfTrainingAndOfEvaluationWhereEpochsAreEvaluated) {
    for (const bool has_stages : {false, true}) {
        config::Config config = small_classifier();
        if (has_stages) {
            config.bagging.degree = 2;
            config.parallel.mode = config::ParallelMode::pipeline;
            config.parallel.micro_batches = 2;
        }
        const PlanMemoryRecord after = memory_of(config, 2);
        config.run.evaluate_epochs = 1;
        const PlanMemoryRecord between = memory_of(config, 2);
        const double network = memory_of(small_classifier()).evaluation_bytes;
        const double whole_model = has_stages ? 8.0 * 23'528'522 : 0;  // values and gradients
        EXPECT_NEAR(between.evaluation_bytes, network + whole_model, 0.01 * network);
        EXPECT_DOUBLE_EQ(between.total_bytes,
                         after.total_bytes -
                             std::max(after.working_copy_bytes + after.activation_bytes,
                                      after.evaluation_bytes) +
                             between.working_copy_bytes + between.activation_bytes +
                             between.evaluation_bytes);
    }
}

TEST(Memory, OfADetectorsEvaluationFollowsItsShareOfTheBatch) {
    config::Config config = small_detector();
    const double two = memory_of(config).evaluation_bytes;
    config.training.batch_size = 4;
    const double four = memory_of(config).evaluation_bytes;
    config.training.batch_size = 64;
    const double most = memory_of(config).evaluation_bytes;
    EXPECT_DOUBLE_EQ(most - two, 15 * (four - two)) << "no more than 32 rows";
}

TEST(Memory, OfInputIsTheBatchesInProgressAndDecodedPictures) {
    config::Config config = small_classifier();
    config.data.prefetch_batches = 5;
    config.data.decoded_cache_mib = 2;
    config.data.resident_mib = 3;
    EXPECT_EQ(memory_of(config).input_bytes, 6.0 * 8 * (64 * 64 * 3 + 4) + 5 * 1024 * 1024);
}

TEST(Memory, OfSyntheticFieldsIsNoMoreThanThereAre) {
    config::Config config = small_detector();
    config.workload.kind = config::WorkloadKind::extreme_weather;
    config.workload.channels = 16;
    config.data.kind = config::DataKind::climate_synthetic;
    config.data.decoded_cache_mib = 1;
    config.data.synthetic_samples = 1000;
    const double many = memory_of(config).input_bytes;
    config.data.synthetic_samples = 1;
    config.data.synthetic_validation_samples = 1;
    const double two = memory_of(config).input_bytes;
    const double fields = 64 * 64 * 16 * 4;
    EXPECT_NEAR(many - two, 1024 * 1024 - 2 * fields, 2048) << "except boxes of the samples";
}

TEST(Memory, OfTheProgramCountsWhereTheHostComputes) {
    config::Config config = small_classifier();
    EXPECT_GT(memory_of(config).program_bytes, 0);
    config.device.kind = config::DeviceKind::cuda;
    EXPECT_EQ(memory_of(config).program_bytes, 0);
}

TEST(Memory, OfFieldsIsInTheirPrecisionWithoutACacheOfThoseOnDisk) {
    config::Config config = small_detector();
    config.workload.kind = config::WorkloadKind::extreme_weather;
    config.workload.channels = 16;
    config.data.kind = config::DataKind::climate_hdf5;
    config.data.prefetch_batches = 5;
    const double fp32 = memory_of(config).input_bytes;
    config.data.decoded_cache_mib = 2;
    EXPECT_EQ(memory_of(config).input_bytes, fp32);
    config.data.climate_precision = config::FieldPrecision::bf16;
    EXPECT_EQ(fp32 - memory_of(config).input_bytes, 6.0 * 2 * 64 * 64 * 16 * 2);
}

}  // namespace
}  // namespace hpcai::prediction
