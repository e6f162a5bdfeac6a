// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

#include <hpcai/workloads/probabilities.hpp>

namespace hpcai::workloads {
namespace {

/// Ten samples of four cells and two classes. A model is wrong only in the first cell of some
/// samples.
class ScoreCells : public testing::Test {
protected:
    static std::vector<float> scores_of(const std::vector<std::int32_t>& labels,
                                        int wrong_samples) {
        std::vector<float> values;
        for (std::size_t cell = 0; cell < labels.size(); ++cell) {
            const bool is_wrong = cell % 4 == 0 && static_cast<int>(cell / 4) < wrong_samples;
            const bool predicts_one = (labels[cell] == 1) != is_wrong;
            values.push_back(predicts_one ? 0.25F : 0.75F);
            values.push_back(predicts_one ? 0.75F : 0.25F);
        }
        return values;
    }
    static std::vector<std::int32_t> labels() {
        std::vector<std::int32_t> all;
        for (int sample = 0; sample < 10; ++sample) all.insert(all.end(), {1, 0, 0, 0});
        return all;
    }

    std::vector<std::int32_t> labels_ = labels();
    std::vector<float> good_ = scores_of(labels_, 2), bad_ = scores_of(labels_, 8);
};

TEST_F(ScoreCells, FillsInTheMeanIouOfTheVoteAndEachClass) {
    QualityRecord quality;
    score_cell_vote({{good_, labels_, 2}, {bad_, labels_, 2}, false}, 4, {"sea", "storm"}, quality);
    EXPECT_DOUBLE_EQ(*quality.ensemble.value, (30.0 / 32 + 8.0 / 10) / 2);
    const auto& metric = std::get<MeanIouRecord>(quality.metric);
    EXPECT_DOUBLE_EQ(*metric.ensemble_majority.value, (30.0 / 38 + 2.0 / 10) / 2);
    EXPECT_DOUBLE_EQ(*metric.ensemble_pixel_accuracy.value, 38.0 / 40);
    ASSERT_EQ(metric.segments.size(), 2U);
    EXPECT_EQ(metric.segments[1], (SegmentRecord{"storm", 10, 8, 8, {0.8, ""}}));
    EXPECT_LT(*quality.confidence_interval.low.value, *quality.ensemble.value);
    EXPECT_GT(*quality.confidence_interval.high.value, *quality.ensemble.value);
}

TEST_F(ScoreCells, TakesTheMajorityWhereThatCounts) {
    QualityRecord quality;
    score_cell_vote({{good_, labels_, 2}, {bad_, labels_, 2}, true}, 4, {"sea", "storm"}, quality);
    EXPECT_EQ(quality.ensemble, std::get<MeanIouRecord>(quality.metric).ensemble_majority);
}

TEST_F(ScoreCells, ReportsWhyThereIsNothingWhereNoCellIsScored) {
    std::ranges::fill(labels_, -1);
    QualityRecord quality;
    score_cell_vote({{good_, labels_, 2}, {good_, labels_, 2}, false}, 4, {"a", "b"}, quality);
    EXPECT_FALSE(quality.ensemble.value);
    EXPECT_EQ(quality.ensemble.reason, "no cell was scored");
    EXPECT_FALSE(quality.confidence_interval.low.value);
    GroupResult member;
    score_cells({good_, labels_, 2}, member);
    EXPECT_EQ(member.quality.reason, "no cell was scored");
}

TEST_F(ScoreCells, DetectsABetterSegmentationOnTheSameCells) {
    const Probabilities good{good_, labels_, 2}, bad{bad_, labels_, 2};
    const auto gain = cell_interval_95(bad, 4, &good);
    ASSERT_TRUE(gain);
    EXPECT_GT(gain->low, 0);
    const auto none = cell_interval_95(good, 4, &good);
    EXPECT_EQ(none->low, 0);
    EXPECT_EQ(none->high, 0);
}

}  // namespace
}  // namespace hpcai::workloads
