// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cmath>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

#include <hpcai/data/transforms.hpp>

namespace hpcai::data {
namespace {

CounterStream stream(std::uint32_t trial) {
    return {1, RandomPurpose::test, trial};
}

TEST(TrainingView, CropsStayInsideAndCoverTheWantedAreasAndRatios) {
    const ImageSize size{200, 150};
    double area_sum = 0;
    int flips = 0, vertical_flips = 0;
    for (std::uint32_t trial = 0; trial < 4000; ++trial) {
        CounterStream random = stream(trial);
        const TrainingView view = draw_training_view(size, {0.25, 0.5, 0.1}, random);
        const PixelBox& crop = view.crop;
        ASSERT_TRUE(crop.left >= 0 && crop.top >= 0 && crop.left + crop.width <= size.width &&
                    crop.top + crop.height <= size.height);
        const double area = crop.width * crop.height / (200.0 * 150.0);
        ASSERT_GT(area, 0.24);
        const double ratio = static_cast<double>(crop.width) / crop.height;
        ASSERT_TRUE(ratio > 0.73 && ratio < 1.36);
        area_sum += area;
        flips += view.flip;
        vertical_flips += view.vertical_flip;
    }
    EXPECT_NEAR(area_sum / 4000, 0.524, 0.012);  // torchvision: 0.524; fewer large areas fit
    EXPECT_NEAR(flips / 4000.0, 0.5, 0.04);
    EXPECT_NEAR(vertical_flips / 4000.0, 0.1, 0.02);
}

TEST(TrainingView, FallsBackToACentralCropOfLegalRatio) {
    CounterStream random = stream(0);
    EXPECT_EQ(draw_training_view({1000, 10}, {1.0, 0, 0}, random).crop, (PixelBox{493, 0, 13, 10}));
    EXPECT_EQ(draw_training_view({10, 1000}, {1.0, 0, 0}, random).crop, (PixelBox{0, 493, 10, 13}));
}

TEST(TrainingView, AOnePixelPictureHasOneCrop) {
    CounterStream random = stream(0);
    EXPECT_EQ(draw_training_view({1, 1}, {}, random).crop, (PixelBox{0, 0, 1, 1}));
}

TEST(LargestDenominator, LeavesTheCropAtLeastTheImageSize) {
    EXPECT_EQ(largest_denominator({0, 0, 512, 600}, 64), 8);
    EXPECT_EQ(largest_denominator({0, 0, 511, 600}, 64), 4);
    EXPECT_EQ(largest_denominator({0, 0, 128, 128}, 64), 2);
    EXPECT_EQ(largest_denominator({0, 0, 128, 127}, 64), 1);
}

TEST(EvaluationRequest, FollowsTheRoundingOfTorchvision) {
    const auto sizes = [](ImageSize size, int image_size) {
        const ResizeRequest r = evaluation_request(size, image_size);
        return std::array{r.width, r.height, r.window.left, r.window.top, r.window.width};
    };
    EXPECT_EQ(sizes({500, 375}, 224), (std::array{341, 256, 58, 16, 224}));  // 58.5 to even
    EXPECT_EQ(sizes({402, 300}, 224), (std::array{343, 256, 60, 16, 224}));  // 59.5 to even
    EXPECT_EQ(sizes({375, 500}, 224), (std::array{256, 341, 16, 58, 224}));
    EXPECT_EQ(sizes({256, 256}, 64), (std::array{73, 73, 4, 4, 64}));  // 4.5 to even
    EXPECT_EQ(sizes({256, 256}, 128), (std::array{146, 146, 9, 9, 128}));
}

TEST(Flip, MirrorsColumnsAndRows) {
    std::vector<std::uint8_t> pixels(2 * 2 * 3);
    std::iota(pixels.begin(), pixels.end(), std::uint8_t{0});
    flip(pixels, {2, 2}, {{}, true, false});
    EXPECT_EQ(pixels, (std::vector<std::uint8_t>{3, 4, 5, 0, 1, 2, 9, 10, 11, 6, 7, 8}));
    flip(pixels, {2, 2}, {{}, false, true});
    EXPECT_EQ(pixels, (std::vector<std::uint8_t>{9, 10, 11, 6, 7, 8, 3, 4, 5, 0, 1, 2}));
}

}  // namespace
}  // namespace hpcai::data
