// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>
#include <iostream>
#include <vector>

#include <gtest/gtest.h>

#include <hpcai/data/photograph.hpp>

#include "data/fixtures.hpp"
#include "device/device_rows.hpp"

/// Pictures that a device decodes, against those of data::decode_image().
namespace hpcai::device {
namespace {

using Bytes = std::vector<std::uint8_t>;

/// Decoders round the inverse transform and the colours differently. On an H200, the mean is below
/// 4e-5 and the largest difference is 1.
constexpr double kMeanTolerance = 0.01;  // levels of 255
constexpr int kLargestTolerance = 2;     // levels of 255

struct Differences {
    double sum = 0;
    int largest = 0;
    std::int64_t values = 0;

    void add(const Bytes& got, const Bytes& expected) {
        ASSERT_EQ(got.size(), expected.size());
        for (std::size_t i = 0; i < got.size(); ++i) {
            const int difference = std::abs(int{got[i]} - int{expected[i]});
            sum += difference;
            largest = std::max(largest, difference);
        }
        values += std::ssize(got);
    }
    double mean() const { return sum / static_cast<double>(values); }
    void check() const {
        EXPECT_LE(mean(), kMeanTolerance);
        EXPECT_LE(largest, kLargestTolerance);
    }
};

class JpegBatches : public testing::TestWithParam<DeviceRow> {
protected:
    void SetUp() override {
        batch_ = device_->make_jpeg_batch();
        if (batch_ == nullptr) GTEST_SKIP() << device_->description();
    }
    static std::vector<Bytes> photographs(int count, int size) {
        std::vector<Bytes> files;
        for (int i = 0; i < count; ++i) {
            const data::Image image =
                data::make_photograph({.classes = 10, .size = size}, data::Split::training, i % 10,
                                      static_cast<std::uint32_t>(i));
            files.push_back(data::encode_jpeg(image.view(), 75 + i % 20));
        }
        return files;
    }
    std::vector<JpegFile> decode(const std::vector<Bytes>& files) {
        std::vector<JpegFile> pictures;
        for (const Bytes& file : files) {
            data::ImageSize size{64, 64};  // of a file without a header
            try {
                size = data::read_image_size(file);
            } catch (const data::DecodeError&) {
            }
            const auto bytes = std::as_bytes(std::span(file));
            pictures.push_back({{bytes.begin(), bytes.end()}, size.width, size.height});
        }
        batch_->decode(pictures);
        return pictures;
    }
    Bytes pixels_of(const JpegFile& picture) {
        Bytes pixels(std::size_t{3} * picture.width * picture.height);
        device_->download(std::as_writable_bytes(std::span(pixels)),
                          batch_->pictures() + picture.offset_bytes);
        return pixels;
    }

    std::unique_ptr<Device> device_ = GetParam().make();
    std::unique_ptr<JpegBatch> batch_;
};

TEST_P(JpegBatches, HaveThePixelsOfTheCpuUpToTwoLevels) {
    Differences differences;
    for (const auto& [count, size] : {std::pair{70, 160}, {3, 500}, {70, 161}}) {
        std::vector<Bytes> files = photographs(count, size);
        for (const char* name : {"yuv420.jpg", "yuv422.jpg", "yuv444.jpg"}) {
            files.push_back(data::test::read_fixture(name));
        }
        const std::vector<JpegFile> pictures = decode(files);
        for (std::size_t i = 0; i < files.size(); ++i) {
            // Hardware may refuse small images.
            const bool is_small = std::min(pictures[i].width, pictures[i].height) < 64;
            if (is_small && pictures[i].offset_bytes < 0) continue;
            ASSERT_GE(pictures[i].offset_bytes, 0) << i;
            differences.add(pixels_of(pictures[i]), data::decode_image(files[i]).image.pixels);
        }
        batch_->release();
    }
    std::cout << device_->description() << ": mean difference " << differences.mean()
              << ", largest " << differences.largest << "\n";
    differences.check();
}

TEST_P(JpegBatches, DecodeTheOthersIfAFileIsNoJpeg) {
    std::vector<Bytes> files = photographs(9, 160);
    files[4] = Bytes(900, 7);
    const std::vector<JpegFile> pictures = decode(files);
    Differences differences;
    for (std::size_t i = 0; i < files.size(); ++i) {
        if (i == 4) {
            EXPECT_EQ(pictures[i].offset_bytes, -1);
            continue;
        }
        ASSERT_GE(pictures[i].offset_bytes, 0) << i;
        differences.add(pixels_of(pictures[i]), data::decode_image(files[i]).image.pixels);
    }
    differences.check();
}

INSTANTIATE_TEST_SUITE_P(Devices, JpegBatches, testing::Values(device_rows().front()),
                         testing::PrintToStringParamName());

}  // namespace
}  // namespace hpcai::device
