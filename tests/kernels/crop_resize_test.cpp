// SPDX-License-Identifier: Apache-2.0
#include "kernels/reference/crop_resize.hpp"

#include <algorithm>

#include <gtest/gtest.h>

#include <hpcai/base/error.hpp>
#include <hpcai/data/transforms.hpp>

#include "kernels/buffer.hpp"

namespace hpcai::kernels {
namespace {

/// An image of random pixels somewhere in memory, and a crop of it.
struct Case {
    int picture_width, picture_height;
    data::PixelBox crop;
};

class CropResize : public testing::Test {
protected:
    /// Makes cases with the four ways to mirror, one after the other, at odd addresses; the last
    /// row has no view.
    void make_rows(const std::vector<Case>& cases) {
        std::int64_t bytes = 1;
        for (std::size_t row = 0; row < cases.size(); ++row) {
            const auto& [width, height, crop] = cases[row];
            views_.push_back({bytes, width, crop.left, crop.top, crop.width, crop.height,
                              row % 2 == 1, row / 2 % 2 == 1});
            bytes += std::int64_t{3} * width * height;
        }
        views_.push_back({});
        pictures_ = std::make_unique<Buffer>(contents_.whole(DType::u8, bytes, 256));
    }
    ViewBatch batch(Buffer& images, int side) {
        return {pictures_->as<std::uint8_t>(), views_.data(),
                static_cast<std::int64_t>(views_.size()), images.as<std::uint8_t>(), side};
    }
    Buffer images(int side) const {
        return {DType::u8, static_cast<std::int64_t>(views_.size()) * side * side * 3};
    }

    /// Returns all rows as the CPU's decoders make them.
    Buffer on_cpu(int side) {
        Buffer result = images(side);
        const std::size_t row_bytes =
            static_cast<std::size_t>(side) * static_cast<std::size_t>(side) * 3;
        for (std::size_t row = 0; row + 1 < views_.size(); ++row) {
            const PictureView& view = views_[row];
            const data::ImageView picture{pictures_->as<std::uint8_t>() + view.offset_bytes,
                                          view.picture_width, view.top + view.height,
                                          std::ptrdiff_t{3} * view.picture_width};
            const data::PixelBox box{view.left, view.top, view.width, view.height};
            const std::span<std::uint8_t> to(result.as<std::uint8_t>() + row * row_bytes,
                                             row_bytes);
            data::resize_bilinear(picture.crop(box),
                                  data::full_resize_request(picture.crop(box), side, side), to);
            data::flip(to, {side, side}, {box, view.flip, view.vertical_flip});
        }
        return result;
    }

    Contents contents_{40};
    std::vector<PictureView> views_;
    std::unique_ptr<Buffer> pictures_;
};

const std::vector<Case> kCases{{1, 1, {0, 0, 1, 1}},       {5, 3, {0, 0, 5, 3}},
                               {40, 30, {3, 2, 31, 17}},   {33, 47, {32, 46, 1, 1}},
                               {64, 48, {0, 0, 64, 48}},   {100, 9, {20, 1, 66, 7}},
                               {70, 70, {1, 0, 69, 70}},   {90, 128, {0, 0, 80, 128}},
                               {128, 60, {0, 5, 128, 55}}, {61, 200, {10, 0, 50, 112}}};

TEST_F(CropResize, IsTheReferencesAndTheCpusBitForBit) {
    make_rows(kCases);
    for (const int side : {8, 9, 33, 40}) {
        Buffer got = images(side), expected = images(side);
        crop_resize(batch(got, side), nullptr);
        reference::crop_resize(batch(expected, side), nullptr);
        EXPECT_TRUE(same(got, expected)) << side;
        EXPECT_TRUE(same(got, on_cpu(side))) << side;
    }
}

TEST_F(CropResize, HasTheCpusBitsForEveryReductionUpToTheLargest) {
    const int side = 7;
    std::vector<Case> cases;
    for (int size = 1; size <= side * ops::kMaxCropReduction; ++size) {
        cases.push_back({size, side * ops::kMaxCropReduction + 1 - size, {}});
        cases.back().crop = {0, 0, cases.back().picture_width, cases.back().picture_height};
    }
    make_rows(cases);
    Buffer got = images(side);
    crop_resize(batch(got, side), nullptr);
    EXPECT_TRUE(same(got, on_cpu(side)));
}

TEST_F(CropResize, LeavesWhiteWhite) {
    const int side = 7;
    for (int size = 1; size <= side * ops::kMaxCropReduction; size += 5) {
        views_.push_back({0, size, 0, 0, size, 1 + size / 2});
    }
    const int largest = side * ops::kMaxCropReduction;
    pictures_ = std::make_unique<Buffer>(DType::u8, std::int64_t{3} * largest * largest);  // ones
    Buffer got = images(side);
    std::fill_n(got.as<std::uint8_t>(), got.count(), std::uint8_t{0});
    crop_resize(batch(got, side), nullptr);
    for (std::int64_t i = 0; i < got.count(); ++i) ASSERT_EQ(got[i], 255) << i;
}

TEST_F(CropResize, HasTheCpusBitsForDrawnViewsOfTheUsualSide) {
    CounterStream random(7, RandomPurpose::test, 41);
    std::vector<Case> cases;
    for (const data::ImageSize size : {data::ImageSize{256, 256}, {500, 375}, {375, 500}}) {
        cases.push_back({size.width, size.height, data::draw_training_view(size, {}, random).crop});
    }
    make_rows(cases);
    Buffer got = images(224);
    crop_resize(batch(got, 224), nullptr);
    EXPECT_TRUE(same(got, on_cpu(224)));
}

TEST_F(CropResize, RejectsRowsAndSidesThatDoNotFit) {
    EXPECT_THROW(crop_resize({.rows = 65536, .side = 8}, nullptr), Error);
    EXPECT_THROW(crop_resize({.rows = 0, .side = 8}, nullptr), Error);
    EXPECT_THROW(crop_resize({.rows = 1, .side = 0}, nullptr), Error);
}

}  // namespace
}  // namespace hpcai::kernels
