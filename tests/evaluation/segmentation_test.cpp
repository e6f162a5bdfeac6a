// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include <hpcai/base/error.hpp>
#include <hpcai/evaluation/segmentation.hpp>

namespace hpcai::evaluation {
namespace {

/// Rows of three classes that predict `classes`.
std::vector<float> scores_of(const std::vector<int>& classes) {
    std::vector<float> scores;
    for (const int one : classes) {
        for (int k = 0; k < 3; ++k) scores.push_back(k == one ? 0.8F : 0.1F);
    }
    return scores;
}

const std::vector<std::int32_t> kLabels{0, 0, 0, 0, 1, 1, 2, -1};
const std::vector<int> kPredicted{0, 0, 0, 1, 1, 0, 0, 2};

TEST(Segmentation, CountsCellsPredictionsAndHitsOfEachClass) {
    const CellCounts counts = count_cells(scores_of(kPredicted), kLabels, 3);
    EXPECT_EQ(counts, (CellCounts{{4, 5, 3}, {2, 2, 1}, {1, 0, 0}}));
}

TEST(Segmentation, MeanIouIsTheMeanOverClassesOfHitsInTheUnion) {
    const CellCounts counts = count_cells(scores_of(kPredicted), kLabels, 3);
    EXPECT_EQ(intersection_over_union(counts[0]), 0.5);
    EXPECT_DOUBLE_EQ(*intersection_over_union(counts[1]), 1.0 / 3);
    EXPECT_EQ(intersection_over_union(counts[2]), 0);
    EXPECT_DOUBLE_EQ(*mean_iou(counts), (0.5 + 1.0 / 3) / 3);
    EXPECT_DOUBLE_EQ(*pixel_accuracy(counts), 4.0 / 7);
}

TEST(Segmentation, OmitsAClassThatIsNeitherPresentNorPredicted) {
    const std::vector<std::int32_t> labels{0, 1};
    const CellCounts counts = count_cells(scores_of({0, 1}), labels, 3);
    EXPECT_EQ(intersection_over_union(counts[2]), std::nullopt);
    EXPECT_EQ(mean_iou(counts), 1);
}

TEST(Segmentation, CountsAClassThatIsOnlyPredictedAsWrong) {
    const std::vector<std::int32_t> labels{0, 0};
    EXPECT_DOUBLE_EQ(*mean_iou(count_cells(scores_of({0, 2}), labels, 3)), 0.25);
}

TEST(Segmentation, ARowWithANanHasNoClass) {
    std::vector<float> scores = scores_of({1});
    scores[2] = NAN;
    const std::vector<std::int32_t> labels{1};
    EXPECT_EQ(count_cells(scores, labels, 3), (CellCounts{{0, 0, 0}, {1, 0, 0}, {0, 0, 0}}));
}

TEST(Segmentation, HasNoQualityWithoutCells) {
    const std::vector<std::int32_t> labels{-1};
    const CellCounts counts = count_cells(scores_of({0}), labels, 3);
    EXPECT_EQ(mean_iou(counts), std::nullopt);
    EXPECT_EQ(pixel_accuracy(counts), std::nullopt);
}

TEST(Segmentation, OfSamplesAddsUpToThatOfAllCells) {
    const auto samples = count_samples(scores_of(kPredicted), kLabels, 3, 4);
    ASSERT_EQ(samples.size(), 2U);
    EXPECT_EQ(samples[0], (CellCounts{{4, 3, 3}, {0, 1, 0}, {0, 0, 0}}));
    CellCounts sum;
    for (const CellCounts& one : samples) add_cells(one, 2, sum);
    EXPECT_EQ(sum, (CellCounts{{8, 10, 6}, {4, 4, 2}, {2, 0, 0}}));
}

TEST(Segmentation, RejectsLabelsThatAreNoClassAndSizesThatDoNotFit) {
    EXPECT_THROW(count_cells(scores_of({0}), std::vector<std::int32_t>{3}, 3), Error);
    EXPECT_THROW(count_cells(scores_of({0}), std::vector<std::int32_t>{-2}, 3), Error);
    EXPECT_THROW(count_cells(scores_of({0}), kLabels, 3), Error);
    EXPECT_THROW(count_samples(scores_of(kPredicted), kLabels, 3, 3), Error);
}

}  // namespace
}  // namespace hpcai::evaluation
