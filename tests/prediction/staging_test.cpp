// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include <gtest/gtest.h>

#include <hpcai/prediction/estimate.hpp>

/// The estimate of `plan` for the data duplicator.
namespace hpcai::prediction {
namespace {

constexpr double kSamples = 1'000'000;
constexpr double kOut = 0.36787944117144233;  // 1/e: probability of being out of a bootstrap

config::Config with_stage(config::Sampler sampler, config::Staging staging, int groups) {
    config::Config config;
    config.data.kind = config::DataKind::image_folder;
    config.data.path = "set";
    config.data.staging = staging;
    config.data.staging_directory = "local";
    config.bagging.sampler = sampler;
    config.bagging.groups = groups;
    config.bagging.out_of_bag = staging == config::Staging::all;
    return config;
}

/// Returns the share of the samples on the fullest node.
double share(const config::Config& config, int ranks, int ranks_per_node) {
    const PlanRecord plan = estimate(config, {.ranks = ranks,
                                              .ranks_per_node = ranks_per_node,
                                              .samples = static_cast<std::int64_t>(kSamples),
                                              .bytes_per_sample = 1000});
    EXPECT_EQ(plan.staging.fullest_node_bytes.value.value(),
              plan.staging.fullest_node_samples.value.value() * 1000);
    return *plan.staging.fullest_node_samples.value / kSamples;
}

constexpr double kRounding = 1e-6;  // one sample of a million

TEST(StagingEstimate, UnitesTheBootstrapsOfANode) {
    using enum config::Sampler;
    const auto training = config::Staging::training;
    EXPECT_NEAR(share(with_stage(poisson, training, 1), 1, 1), 1 - kOut, kRounding);
    EXPECT_NEAR(share(with_stage(bootstrap, training, 4), 4, 2), 1 - kOut * kOut, kRounding);
    EXPECT_NEAR(share(with_stage(none, training, 2), 2, 2), 1, kRounding);
    config::Config half = with_stage(subsample, training, 3);
    half.bagging.subsample_fraction = 0.5;
    EXPECT_NEAR(share(half, 3, 3), 0.875, kRounding);
    EXPECT_NEAR(share(half, 3, 2), 0.75, kRounding) << "two groups on the first node";
}

TEST(StagingEstimate, AddsWhatANodesRanksEvaluateOutOfBag) {
    const config::Config config = with_stage(config::Sampler::bootstrap, config::Staging::all, 1);
    EXPECT_NEAR(share(config, 4, 4), 1, kRounding);
    EXPECT_NEAR(share(config, 4, 2), 1 - kOut / 2, kRounding) << "a group over two nodes";
}

TEST(StagingEstimate, TakesAllFilesOfTheWeatherAndNothingWhereNothingIsStaged) {
    config::Config weather = with_stage(config::Sampler::poisson, config::Staging::training, 1);
    weather.data.kind = config::DataKind::climate_hdf5;
    weather.workload.kind = config::WorkloadKind::extreme_weather;
    weather.workload.model = config::Model::faster_rcnn_r50_fpn;
    weather.workload.channels = 16;
    weather.workload.classes = 3;
    EXPECT_NEAR(share(weather, 1, 1), 1, kRounding);
    const config::Config unstaged = with_stage(config::Sampler::poisson, config::Staging::none, 1);
    const PlanRecord plan = estimate(unstaged, {.ranks = 1, .samples = 10, .bytes_per_sample = 7});
    EXPECT_FALSE(plan.staging.fullest_node_bytes.value.has_value());
}

TEST(StagingEstimate, ReportsThatTheSizeOfSamplesIsUnknown) {
    const config::Config config =
        with_stage(config::Sampler::poisson, config::Staging::training, 1);
    const PlanRecord plan = estimate(config, {.ranks = 1, .samples = 10});
    EXPECT_EQ(plan.staging.fullest_node_samples.value, 6);
    EXPECT_FALSE(plan.staging.fullest_node_bytes.value.has_value());
    EXPECT_NE(plan.staging.fullest_node_bytes.reason.find("unknown"), std::string::npos);
}

}  // namespace
}  // namespace hpcai::prediction
