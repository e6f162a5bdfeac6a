// SPDX-License-Identifier: Apache-2.0
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include <hpcai/base/error.hpp>
#include <hpcai/evaluation/average_precision.hpp>

namespace hpcai::evaluation {
namespace {

constexpr double kUndefined = std::numeric_limits<double>::quiet_NaN();
using Hits = std::vector<std::uint8_t>;
using Detections = std::vector<Detection>;

TEST(AveragePrecision, HasTheThreeKnownMeansOfTwoRankings) {
    const AveragePrecision ten = average_precision(Hits{1, 1, 0, 1, 0, 0, 1, 0, 1, 0}, 7);
    EXPECT_NEAR(ten.voc_2007, 0.562049, 5e-7);
    EXPECT_NEAR(ten.voc_area, 0.553855, 5e-7);
    EXPECT_NEAR(ten.coco, 0.552962, 5e-7);
    const AveragePrecision five = average_precision(Hits{1, 0, 1, 1, 0}, 4);
    EXPECT_NEAR(five.voc_2007, 0.613636, 5e-7);
    EXPECT_NEAR(five.voc_area, 0.625, 1e-15);
    EXPECT_NEAR(five.coco, 0.628713, 5e-7);
}

TEST(AveragePrecision, IsZeroForNothingAndOneForAll) {
    EXPECT_EQ(average_precision({}, 3).coco, 0);
    EXPECT_EQ(average_precision({}, 3).voc_area, 0);
    EXPECT_EQ(average_precision(Hits{0, 0}, 3).voc_2007, 0);
    const AveragePrecision all = average_precision(Hits{1, 1, 0}, 2);
    EXPECT_NEAR(all.coco, 1, 1e-15);
    EXPECT_NEAR(all.voc_area, 1, 1e-15);
    EXPECT_THROW(average_precision(Hits{1}, 0), Error);
}

/// One box of category 1 at the origin of each of two images, 10 x 10.
const DetectionTruth kTwo{2, 2, {{0, 1, {0, 0, 10, 10}}, {1, 1, {0, 0, 10, 10}}}};

DetectionQuality at_half(const DetectionTruth& truth, const Detections& detections) {
    return detection_quality(truth, detections, kAp50Overlap);
}

TEST(DetectionQuality, LeavesACategoryWithoutBoxesOutOfTheMean) {
    const Detections found{{0, 1, 0.9, {0, 0, 10, 10}}, {1, 2, 1.0, {0, 0, 10, 10}}};
    const DetectionQuality got = at_half(kTwo, found);
    EXPECT_EQ(got.categories[0].hits, 1);
    EXPECT_FALSE(got.categories[1].precision);
    EXPECT_EQ(got.categories[1].detections, 1);
    EXPECT_NEAR(got.mean->voc_area, 0.5, 1e-15);
    EXPECT_FALSE(at_half({2, 2, {}}, found).mean);
    EXPECT_FALSE(at_half({0, 0, {}}, {}).mean);
}

TEST(DetectionQuality, TakesAnOverlapOfExactlyTheThreshold) {
    EXPECT_EQ(at_half(kTwo, {{0, 1, 0.9, {0, 0, 10, 5}}}).categories[0].hits, 1);
    EXPECT_EQ(at_half(kTwo, {{0, 1, 0.9, {0, 0, 10, 4.999}}}).categories[0].hits, 0);
    EXPECT_EQ(detection_quality(kTwo, Detections{{0, 1, 1, {0, 0, 10, 10}}}, 1).categories[0].hits,
              1);
}

TEST(DetectionQuality, GivesABoxToOneDetectionOnly) {
    const Detections twice{{0, 1, 0.8, {0, 0, 10, 10}}, {0, 1, 0.9, {1, 0, 10, 10}}};
    const CategoryQuality got = at_half(kTwo, twice).categories[0];
    EXPECT_EQ(got.detections, 2);
    EXPECT_EQ(got.hits, 1);
}

TEST(DetectionQuality, CountsTheHundredBestOfAnImageAndCategory) {
    Detections many(100, {0, 1, 0.5, {50, 50, 10, 10}});
    many.push_back({0, 1, 0.4, {0, 0, 10, 10}});
    EXPECT_EQ(at_half(kTwo, many).categories[0].hits, 0);
    EXPECT_EQ(at_half(kTwo, many).categories[0].detections, 100);
    many.back().score = 0.6;
    EXPECT_EQ(at_half(kTwo, many).categories[0].hits, 1);
}

TEST(DetectionQuality, OmitsWhatIsNotANumber) {
    const double infinity = std::numeric_limits<double>::infinity();
    const Detections unsound{
        {0, 1, kUndefined, {0, 0, 10, 10}},   {0, 1, infinity, {0, 0, 10, 10}},
        {0, 1, 0.9, {kUndefined, 0, 10, 10}}, {0, 1, 0.9, {0, kUndefined, 10, 10}},
        {0, 1, 0.9, {0, 0, infinity, 10}},    {0, 1, 0.9, {0, 0, 10, -10}}};
    EXPECT_EQ(at_half(kTwo, unsound).categories[0].detections, 0);
    EXPECT_EQ(at_half(kTwo, unsound).mean->coco, 0);
}

TEST(DetectionQuality, RejectsAnImageOrCategoryThatIsNotThere) {
    for (const Detection& one : Detections{{2, 1}, {-1, 1}, {0, 0}, {0, 3}}) {
        EXPECT_THROW(at_half(kTwo, {one}), Error);
        EXPECT_THROW(at_half({2, 2, {{one.image, one.category, {}}}}, {}), Error);
    }
}

TEST(BootstrapInterval, IsAPointWhereAllImagesAreEqual) {
    const Detections found{{0, 1, 0.9, {0, 0, 10, 10}}, {1, 1, 0.9, {0, 0, 10, 10}}};
    const auto interval = bootstrap_interval_95(kTwo, found, kAp50Overlap);
    ASSERT_TRUE(interval);
    EXPECT_NEAR(interval->low, 1, 1e-15);
    EXPECT_NEAR(interval->high, 1, 1e-15);
    EXPECT_FALSE(bootstrap_interval_95({2, 1, {}}, {}, kAp50Overlap));
    EXPECT_FALSE(bootstrap_interval_95({0, 0, {}}, {}, kAp50Overlap));
}

TEST(BootstrapInterval, IsThatOfAShareWhereEachImageIsFoundOrNot) {
    // One box in each image, 160 of 400 found without an error: precision is the share of found
    // boxes, whose standard deviation is sqrt(0.4 * 0.6 / 400) = 0.0245.
    DetectionTruth truth{400, 1, {}};
    Detections found;
    for (std::int64_t image = 0; image < 400; ++image) {
        truth.boxes.push_back({image, 1, {0, 0, 10, 10}});
        if (image < 160) found.push_back({image, 1, 0.9, {0, 0, 10, 10}});
    }
    const auto interval = bootstrap_interval_95(truth, found, kAp50Overlap);
    ASSERT_TRUE(interval);
    EXPECT_NEAR(interval->low, 0.4 - 1.96 * 0.0245, 0.01);
    EXPECT_NEAR(interval->high, 0.4 + 1.96 * 0.0245, 0.01);
    const auto again = bootstrap_interval_95(truth, found, kAp50Overlap);
    EXPECT_EQ(again->low, interval->low);
    EXPECT_EQ(again->high, interval->high);
}

}  // namespace
}  // namespace hpcai::evaluation
