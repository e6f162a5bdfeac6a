// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "launch.hpp"

/// Complete runs with BatchNorm statistics over several ranks, compared with one rank with the
/// whole batch.
namespace hpcai::end_to_end {
namespace {

constexpr const char* kDetector = R"(run: {name: tiny, seed: 3, roofline: off}
workload:
  {kind: extreme_weather, model: faster_rcnn_r50_fpn, classes: 4, image_size: 64, image_width: 96,
   channels: 16, backbone_width: 8, target_quality: 0.35, penalty_exponent: 10, epochs: 1}
detector:
  {pyramid_channels: 16, head_features: 32, anchor_samples: 32,
   anchor_sizes: [16, 24, 40, 64, 96], region_samples: 16, training_proposals: 50,
   inference_proposals: 50}
bagging: {M: 1, P_degree: auto, sampler: none, aggregation: wbf, out_of_bag: false}
data: {kind: climate_synthetic, synthetic_samples: 16, synthetic_validation_samples: 2}
training:
  {batch_size: 4, batch_norm_samples: 4, learning_rate: 0.01, schedule: constant, warmup_epochs: 0,
   precision: fp32}
device: {kind: cpu, threads: 1}
)";

/// Settings for kConfig; the last one is training.batch_norm_samples.
const std::vector<std::string> kWholeBatch{"bagging.M=1", "bagging.P_degree=auto",
                                           "training.batch_norm_samples=8"};

class RankStatisticsRun : public testing::Test {
protected:
    nlohmann::json train(int ranks, const std::vector<std::string>& changes) const {
        const Outcome outcome = run_ranks(folder_.path(), ranks, changes, std::to_string(ranks));
        EXPECT_EQ(outcome.exit_code, 0) << outcome.error;
        return json_of(folder_ / std::to_string(ranks) / "result.json");
    }

    void expect_close_predictions(int one, int other) const {
        const std::vector<float> got = predictions(one), want = predictions(other);
        ASSERT_EQ(got.size(), want.size());
        for (std::size_t i = 0; i < want.size(); ++i) ASSERT_NEAR(got[i], want[i], 1e-4) << i;
    }

    std::vector<float> predictions(int ranks) const {
        const auto path = folder_ / std::to_string(ranks) / "groups/0/predictions.npy";
        const storage::NpyArray array = storage::read_npy(path);
        const auto values = array.as<float>();
        return {values.begin(), values.end()};
    }

    static double loss(const nlohmann::json& record) {
        return record["work"]["groups"][0]["final_training_loss"];
    }

    storage::TemporaryFolder folder_;
};

TEST_F(RankStatisticsRun, TrainsTheModelOfOneRankWithTheWholeBatch) {
    make_pictures(folder_.path());
    write(folder_ / "tiny.yaml", kConfig);
    const double alone = loss(train(1, kWholeBatch));
    const nlohmann::json record = train(2, kWholeBatch);
    EXPECT_NEAR(loss(record), alone, 1e-4);
    expect_close_predictions(2, 1);
    constexpr std::int64_t kChannels = 26560 / 8;  // ResNet-50 normalizes 26560
    constexpr std::int64_t kPayload = 2 * 2 * 8 * kChannels;
    const nlohmann::json& communication = record["communication"];
    EXPECT_EQ(communication["statistics_ranks"], 2);
    EXPECT_EQ(communication["statistics_sums_per_step"], 2 * 53);
    EXPECT_EQ(communication["statistics_bytes_per_step"], kPayload);
    const double gradients = communication["gradient_bytes"];
    EXPECT_NEAR(communication["sent_bytes_per_step"], gradients + kPayload, 1e-3 * gradients);
    EXPECT_GT(communication["statistics_seconds"], 0);
    EXPECT_GT(communication["exposed_seconds"], communication["statistics_seconds"]);
}

TEST_F(RankStatisticsRun, TrainsTheModelOfRanksThatHaveASpanEach) {
    make_pictures(folder_.path());
    write(folder_ / "tiny.yaml", kConfig);
    std::vector<std::string> changes = kWholeBatch;
    changes.back() = "training.batch_norm_samples=4";
    const nlohmann::json apart = train(2, changes), together = train(4, changes);
    EXPECT_EQ(apart["communication"]["statistics_ranks"], 1);
    EXPECT_EQ(apart["communication"]["statistics_sums_per_step"], 0);
    EXPECT_EQ(together["communication"]["statistics_ranks"], 2);
    EXPECT_NEAR(loss(together), loss(apart), 1e-4);
    expect_close_predictions(4, 2);
}

TEST_F(RankStatisticsRun, TrainsTheDetectorOfOneRankWithTheWholeBatch) {
    write(folder_ / "tiny.yaml", kDetector);
    const double alone = loss(train(1, {}));
    EXPECT_NEAR(loss(train(2, {})), alone, 1e-4 * alone);
    EXPECT_GT(std::abs(loss(train(4, {"training.batch_norm_samples=auto"})) / alone - 1), 1e-3)
        << "or the comparison could not fail";
}

}  // namespace
}  // namespace hpcai::end_to_end
