// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <hpcai/evaluation/detection_ensemble.hpp>

#include "support/largest_error.hpp"
#include "support/reference_json.hpp"

namespace hpcai::evaluation {
namespace {

using nlohmann::json;
using Detections = std::vector<Detection>;

Box corners(const json& row, std::size_t first) {
    return box_from_corners(row[first], row[first + 1], row[first + 2], row[first + 3]);
}

std::vector<MemberDetection> pooled_of(const json& one) {
    std::vector<MemberDetection> pooled;
    for (std::size_t member = 0; member < one["boxes"].size(); ++member) {
        for (std::size_t index = 0; index < one["boxes"][member].size(); ++index) {
            pooled.push_back({static_cast<std::int32_t>(member),
                              {0, one["labels"][member][index], one["scores"][member][index],
                               corners(one["boxes"][member][index], 0)}});
        }
    }
    return pooled;
}

double distance(const Box& a, const Box& b) {
    return std::max({std::abs(a.x - b.x), std::abs(a.y - b.y), std::abs(a.width - b.width),
                     std::abs(a.height - b.height)});
}

TEST(WeightedBoxesFusion, AgreesWithEnsembleBoxes) {
    // the reference sums corners in fp32, in [0, 1]
    tests::LargestError error("boxes and scores of weighted boxes fusion, fp64", 3e-7);
    const json cases = tests::read_reference_json("metrics_detection.json")["fusion"];
    for (std::size_t number = 0; number < cases.size(); ++number) {
        const json& one = cases[number];
        const std::vector<double> weights = one["weights"];
        const Detections got = fuse_image(pooled_of(one), weights, {.overlap = one["iou"]});
        ASSERT_EQ(got.size(), one["fused"].size()) << number;
        for (std::size_t index = 0; index < got.size(); ++index) {
            const json& row = one["fused"][index];
            const std::string at = fmt::format("case {}, box {}", number, index);
            EXPECT_EQ(got[index].category, row[0]) << at;
            error.add(std::abs(got[index].score - row[1].get<double>()), at);
            error.add(distance(got[index].box, corners(row, 2)), at);
        }
    }
}

TEST(WeightedBoxesFusion, HasTheKnownBestBoxOfItsReadme) {
    const json readme = tests::read_reference_json("metrics_detection.json")["fusion"][0];
    const Detections got = fuse_image(pooled_of(readme), std::vector{2.0, 1.0}, {.overlap = 0.5});
    ASSERT_EQ(got.size(), 7U);
    EXPECT_NEAR(got[0].score, 0.8, 1e-15);
    EXPECT_LT(distance(got[0].box, box_from_corners(0.106667, 0.316667, 0.713333, 0.62)), 1e-6);
    EXPECT_NEAR(got[1].score, 0.733333, 1e-6);
    EXPECT_LT(distance(got[1].box, box_from_corners(0.001818, 0.475455, 0.813636, 0.913636)), 1e-6);
    EXPECT_NEAR(got[6].score, 0.1, 1e-15);
}

const std::vector<double> kTwoModels{1, 1};
const Box kBox{10, 20, 30, 40};

TEST(WeightedBoxesFusion, CountsAModelWithoutTheBoxAsZero) {
    const std::vector<MemberDetection> one{{0, {3, 1, 0.8, kBox}}};
    EXPECT_EQ(fuse_image(one, kTwoModels, {}), (Detections{{3, 1, 0.4, kBox}}));
    const std::vector<MemberDetection> both{{0, {3, 1, 0.8, kBox}}, {1, {3, 1, 0.6, kBox}}};
    const Detections got = fuse_image(both, kTwoModels, {});
    ASSERT_EQ(got.size(), 1U);
    EXPECT_NEAR(got[0].score, 0.7, 1e-15);
}

TEST(WeightedBoxesFusion, FusesEachCategorySeparately) {
    const std::vector<MemberDetection> two{{0, {3, 2, 0.8, kBox}}, {1, {3, 1, 0.8, kBox}}};
    EXPECT_EQ(fuse_image(two, kTwoModels, {}), (Detections{{3, 1, 0.4, kBox}, {3, 2, 0.4, kBox}}));
}

class EachMerging : public testing::TestWithParam<FusionMethod> {};

TEST_P(EachMerging, OmitsLowScoresAndWhatIsNoBox) {
    const double nan = std::numeric_limits<double>::quiet_NaN();
    std::vector<MemberDetection> pooled;
    for (const double score : {0.009, 0.0, -1.0, nan}) pooled.push_back({0, {0, 1, score, kBox}});
    pooled.push_back({0, {0, 1, 0.9, {0, 0, 0, 5}}});
    pooled.push_back({1, {0, 1, 0.9, {nan, 0, 5, 5}}});
    EXPECT_TRUE(fuse_image(pooled, kTwoModels, {.method = GetParam()}).empty());
    EXPECT_TRUE(fuse_image({}, kTwoModels, {.method = GetParam()}).empty());
    const std::vector<MemberDetection> lowest{{0, {0, 1, 0.01, kBox}}};
    EXPECT_EQ(fuse_image(lowest, kTwoModels, {.method = GetParam()}).size(), 1U);
}

TEST_P(EachMerging, KeepsTheBestOfAnImage) {
    std::vector<MemberDetection> pooled;
    for (int index = 1; index <= 9; ++index) {
        pooled.push_back({index % 2, {0, 1 + index % 3, 0.1 * index, {20.0 * index, 0, 10, 10}}});
    }
    const Detections got = fuse_image(pooled, kTwoModels, {.method = GetParam(), .limit = 4});
    ASSERT_EQ(got.size(), 4U);
    for (std::size_t index = 0; index < 4; ++index) {
        EXPECT_EQ(got[index].box.x, 180 - 20 * static_cast<double>(index));
    }
}

INSTANTIATE_TEST_SUITE_P(Both, EachMerging,
                         testing::Values(FusionMethod::weighted_fusion, FusionMethod::suppression));

TEST(Suppression, KeepsTheBestOfABoxThatAllModelsFound) {
    const std::vector<MemberDetection> pooled{
        {0, {0, 1, 0.6, kBox}}, {1, {0, 1, 0.8, {11, 20, 30, 40}}}, {1, {0, 2, 0.3, kBox}}};
    EXPECT_EQ(fuse_image(pooled, kTwoModels, {.method = FusionMethod::suppression, .overlap = 0.5}),
              (Detections{{0, 1, 0.8, {11, 20, 30, 40}}, {0, 2, 0.3, kBox}}));
}

TEST(Suppression, KeepsBoxesThatOverlapByTheThresholdExactly) {
    const std::vector<MemberDetection> pooled{{0, {0, 1, 0.6, {0, 0, 10, 10}}},
                                              {1, {0, 1, 0.8, {0, 0, 10, 5}}}};
    EXPECT_EQ(fuse_image(pooled, kTwoModels, {.method = FusionMethod::suppression, .overlap = 0.5})
                  .size(),
              2U);
}

}  // namespace
}  // namespace hpcai::evaluation
