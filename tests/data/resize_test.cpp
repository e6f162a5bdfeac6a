// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <hpcai/base/error.hpp>
#include <hpcai/data/transforms.hpp>

#include "fixtures.hpp"
#include "pixel_errors.hpp"

namespace hpcai::data {
namespace {

std::vector<std::uint8_t> resize(const Image& source, const ResizeRequest& request) {
    std::vector<std::uint8_t> target(static_cast<std::size_t>(request.window.width) *
                                     static_cast<std::size_t>(request.window.height) * 3);
    resize_bilinear(source.view(), request, target);
    return target;
}

TEST(Resize, EqualsPillowBitByBitForBoxesAndBothDirections) {
    test::PixelErrors exact("resize", 0, 0);
    // Each pass rounds to whole levels, and Pillow runs the passes in the other order.
    test::PixelErrors swapped("resize, against Pillow 13 with the vertical pass first", 1, 0.5);
    std::ifstream in(test::fixture_path("resize.json"));
    const auto cases = nlohmann::json::parse(in);
    ASSERT_GE(cases.size(), 10U);
    for (const auto& entry : cases) {
        const std::vector<float> box = entry["box"];
        const int width = entry["width"];
        const int height = entry["height"];
        const auto got =
            resize(test::read_ppm(entry["source"]),
                   {{box[0], box[1], box[2], box[3]}, width, height, {0, 0, width, height}});
        const bool vertical_first = entry.contains("horizontal_first");
        exact.add(got, test::read_ppm(entry[vertical_first ? "horizontal_first" : "file"]).pixels,
                  entry.dump());
        if (vertical_first) swapped.add(got, test::read_ppm(entry["file"]).pixels, entry.dump());
    }
}

TEST(Resize, AWindowHoldsTheSamePixelsAsTheWholeTarget) {
    const Image source = test::read_ppm("resize_source.ppm");
    ResizeRequest request = full_resize_request(source.view(), 40, 31);
    const auto whole = resize(source, request);
    request.window = {7, 5, 20, 13};
    const auto part = resize(source, request);
    for (std::size_t y = 0; y < 13; ++y) {
        for (std::size_t i = 0; i < 20 * 3; ++i) {
            ASSERT_EQ(part[y * 60 + i], whole[(y + 5) * 120 + 21 + i]);
        }
    }
}

TEST(Resize, ACropOfTheSourceIsResizedAsIfItWereAPictureOfItsOwn) {
    const Image source = test::read_ppm("resize_source.ppm");
    const PixelBox box{11, 9, 20, 30};
    Image copy(box.width, box.height);
    for (int y = 0; y < box.height; ++y) {
        const std::uint8_t* row = source.view().crop(box).row(y);
        std::copy(row, row + box.width * 3, copy.pixels.begin() + y * box.width * 3);
    }
    std::vector<std::uint8_t> direct(12 * 12 * 3);
    const ImageView crop = source.view().crop(box);
    resize_bilinear(crop, full_resize_request(crop, 12, 12), direct);
    EXPECT_EQ(direct, resize(copy, full_resize_request(copy.view(), 12, 12)));
}

TEST(Resize, RejectsABoxOutsideTheSource) {
    const Image source(10, 10);
    EXPECT_THROW(resize(source, {{0, 0, 11, 10}, 5, 5, {0, 0, 5, 5}}), Error);
    EXPECT_THROW(resize(source, {{4, 0, 4, 10}, 5, 5, {0, 0, 5, 5}}), Error);
    EXPECT_THROW(resize(source, {{0, 0, 10, 10}, 5, 5, {1, 0, 5, 5}}), Error);
}

}  // namespace
}  // namespace hpcai::data
