// SPDX-License-Identifier: Apache-2.0
#include <cstring>
#include <vector>

#include <gtest/gtest.h>

#include <hpcai/base/error.hpp>
#include <hpcai/base/philox.hpp>

#include "kernels/reference/crop_resize.hpp"

#include "device/device_rows.hpp"

/// Rows of batches that a device makes from images in its memory.
namespace hpcai::device {
namespace {

using Bytes = std::vector<std::uint8_t>;

class Crops : public testing::TestWithParam<DeviceRow> {};

/// Returns `count` crops of one image, from a pixel to sixteen times `side`; the last row has no
/// crop.
std::vector<PictureView> make_views(int count, int side, int picture_side) {
    CounterStream random(6, RandomPurpose::test, 60);
    const auto below = [&](int n) {
        return static_cast<int>(random.below(static_cast<std::uint32_t>(n)));
    };
    std::vector<PictureView> views;
    for (int i = 0; i < count; ++i) {
        const int width = 1 + below(kMaxCropReduction * side);
        const int height = 1 + below(kMaxCropReduction * side);
        const int left = below(picture_side - width + 1), top = below(picture_side - height + 1);
        views.push_back({3, picture_side, left, top, width, height, below(2) == 1, below(2) == 1});
    }
    views.push_back({});
    return views;
}

Bytes random_bytes(std::size_t count) {
    CounterStream random(6, RandomPurpose::test, 61);
    Bytes bytes(count);
    for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(random.below(256));
    return bytes;
}

Bytes on_device(Device& device, const Bytes& pictures, const std::vector<PictureView>& views,
                const Bytes& images, int side) {
    const auto pictures_there = device.allocate(pictures.size());
    const auto views_there = device.allocate(std::as_bytes(std::span(views)).size());
    const auto images_there = device.allocate(images.size());
    device.upload(pictures_there->data(), std::as_bytes(std::span(pictures)));
    device.upload(views_there->data(), std::as_bytes(std::span(views)));
    device.upload(images_there->data(), std::as_bytes(std::span(images)));
    device.resize_crops({static_cast<const std::uint8_t*>(pictures_there->data()),
                         static_cast<const PictureView*>(views_there->data()),
                         static_cast<std::int64_t>(views.size()),
                         static_cast<std::uint8_t*>(images_there->data()), side});
    Bytes result(images.size());
    device.download(std::as_writable_bytes(std::span(result)), images_there->data());
    return result;
}

TEST_P(Crops, AreResizedAndMirroredBitForBitOrNotAtAll) {
    const auto device = GetParam().make();
    if (!device->can_resize_crops()) {
        EXPECT_THROW(device->resize_crops({}), Error);
        return;
    }
    for (const int side : {5, 40}) {
        const int picture_side = kMaxCropReduction * side + 7;
        const std::vector<PictureView> views = make_views(side < 10 ? 60 : 6, side, picture_side);
        const Bytes pictures =
            random_bytes(3 + std::size_t{3} * static_cast<std::size_t>(picture_side) *
                                 static_cast<std::size_t>(picture_side));
        const Bytes before = random_bytes(views.size() * static_cast<std::size_t>(3 * side * side));
        Bytes expected = before;
        kernels::reference::crop_resize(
            {pictures.data(), views.data(), static_cast<std::int64_t>(views.size()),
             expected.data(), side},
            nullptr);
        EXPECT_EQ(on_device(*device, pictures, views, before, side), expected) << side;
    }
}

INSTANTIATE_TEST_SUITE_P(Devices, Crops, testing::ValuesIn(device_rows()),
                         testing::PrintToStringParamName());

}  // namespace
}  // namespace hpcai::device
